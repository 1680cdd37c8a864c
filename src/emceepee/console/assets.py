"""The page's files: assets that never change under their URL, and the HTML pages that refer to them."""

import gzip
import hashlib
import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from emceepee.console.console_request import ConsoleRequest, Route
from emceepee.web.asgi import Header, Headers, Send

ASSETS_PATH = "/console/assets"
HASH_LETTERS = 16
WORTH_PACKING = 500  # bytes; smaller files do not shrink on the wire
CONTENT_TYPES = {
    "css": b"text/css; charset=utf-8",
    "ico": b"image/x-icon",
    "js": b"text/javascript; charset=utf-8",
    "json": b"application/json",
    "png": b"image/png",
    "svg": b"image/svg+xml",
    "woff2": b"font/woff2",
}
PAGE_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/html; charset=utf-8"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        b"trusted-types 'none'",
    ),
    # Not no-referrer: browsers would then send the page's own forms with the origin "null".
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
FOREVER: Header = (b"cache-control", b"public, max-age=31536000, immutable")


def package_files() -> Traversable:
    return files("emceepee.console") / "page"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asset:
    content_type: bytes
    plain: bytes
    packed: bytes | None


class Assets:
    """Reads a folder tree once. One hash covers all files, so that a page never mixes files of two versions."""

    def __init__(self, folder: Traversable) -> None:
        found = dict(_files_in(folder))
        digest = hashlib.sha256()
        for name in sorted(found):
            digest.update(f"{name} {len(found[name])} ".encode() + found[name])
        self._hash = digest.hexdigest()[:HASH_LETTERS]
        self._pages = {name: text.decode() for name, text in found.items() if name.endswith(".html")}
        self._assets = {name: _asset(name, content) for name, content in found.items() if name not in self._pages}

    @property
    def prefix(self) -> str:
        return f"{ASSETS_PATH}/{self._hash}"

    def page(self, name: str, words: Mapping[str, str] | None = None) -> bytes:
        """Return a page with its {{places}} filled in; `words` are escaped as text."""
        text = self._pages[name]
        text = text.replace("{{modules}}", self._preloads(text)).replace("{{assets}}", self.prefix)
        for place, said in (words or {}).items():
            text = text.replace("{{" + place + "}}", html.escape(said))
        return text.encode()

    def _preloads(self, page: str) -> str:
        """Return preload links for modules: a browser would otherwise discover imported modules one after the other."""
        modules = sorted(
            name for name in self._assets if name.endswith(".js") and f'{{{{assets}}}}/{name}"' not in page
        )
        return "\n".join(f'<link rel="modulepreload" href="{{{{assets}}}}/{name}">' for name in modules)

    def routes(self) -> tuple[Route, ...]:
        return tuple(
            Route(method, f"{self.prefix}/{name}", self._serve, is_open=True)
            for name in self._assets
            for method in ("GET", "HEAD")
        )

    async def _serve(self, request: ConsoleRequest) -> None:
        name = request.path.removeprefix(f"{self.prefix}/")
        asset, tag = self._assets[name], f'"{self._hash}"'.encode()
        headers: list[Header] = [(b"etag", tag), FOREVER, (b"vary", b"accept-encoding")]
        if request.headers.get(b"if-none-match") in (tag, b"W/" + tag):
            await _send(request.send, 304, b"", headers)
            return
        body = asset.plain
        headers.append((b"content-type", asset.content_type))
        if asset.packed is not None and _takes_gzip(request.headers):
            body = asset.packed
            headers.append((b"content-encoding", b"gzip"))
        await _send(request.send, 200, body, [*headers, (b"content-length", str(len(body)).encode())])


def _files_in(folder: Traversable, path: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files_in(entry, f"{path}{entry.name}/")
        else:
            yield f"{path}{entry.name}", entry.read_bytes()


async def respond_page(send: Send, status: int, page: bytes) -> None:
    length = (b"content-length", str(len(page)).encode())
    await _send(send, status, page, [length, *PAGE_HEADERS])


async def _send(send: Send, status: int, body: bytes, headers: list[Header]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _asset(name: str, content: bytes) -> _Asset:
    kind = CONTENT_TYPES.get(name.rpartition(".")[2], b"application/octet-stream")
    packed = gzip.compress(content, mtime=0) if len(content) >= WORTH_PACKING else b""
    is_smaller = 0 < len(packed) < len(content)
    return _Asset(content_type=kind, plain=content, packed=packed if is_smaller else None)


def _takes_gzip(headers: Headers) -> bool:
    for part in headers.get(b"accept-encoding", b"").lower().split(b","):
        name, _, weight = part.replace(b" ", b"").partition(b";q=")
        if name == b"gzip":
            return weight.strip(b"0.") != b"" if weight else True
    return False
