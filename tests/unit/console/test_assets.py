"""Files are served whole, typed, compressed on request, and under an address that depends on their content."""

import gzip
from pathlib import Path

import pytest

from emceepee.console.assets import Assets
from support.in_process.asgi_messages import Answered, a_console_request

SCRIPT = "console.log('é');\n" * 100
PAGE = '<script src="{{assets}}/main.js"></script><p>{{message}}</p>'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"index.html": PAGE, "main.js": SCRIPT, "style.css": "p {}", "icon.svg": "<svg/>"}.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


async def ask(assets: Assets, name: str, **headers: str) -> Answered:
    (route,) = [route for route in assets.routes() if (route.method, route.path) == ("GET", f"{assets.prefix}/{name}")]
    async with a_console_request(path=route.path, **headers) as (visit, answered):
        await route.serve(visit)
    return answered


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("main.js", "text/javascript; charset=utf-8"),
        ("style.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
async def test_an_asset_is_served_whole_with_its_type_and_cached_forever(folder: Path, name: str, kind: str) -> None:
    answered = await ask(Assets(folder), name)
    assert (answered.status, answered.body) == (200, (folder / name).read_bytes())
    assert answered.headers["content-type"] == kind
    assert answered.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answered.headers["content-length"] == str(len(answered.body))


@pytest.mark.parametrize("accepted", ["gzip", "br, gzip;q=0.5", "deflate,GZIP"])
async def test_a_large_asset_is_compressed_for_browsers_that_accept_gzip(folder: Path, accepted: str) -> None:
    answered = await ask(Assets(folder), "main.js", accept_encoding=accepted)
    assert answered.headers["content-encoding"] == "gzip"
    assert answered.headers["vary"] == "accept-encoding"
    assert len(answered.body) < len(SCRIPT) / 2
    assert gzip.decompress(answered.body).decode() == SCRIPT


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "gzip; q=0.0", "xgzip"])
async def test_an_asset_is_not_compressed_for_browsers_without_gzip(folder: Path, accepted: str) -> None:
    answered = await ask(Assets(folder), "main.js", accept_encoding=accepted)
    assert "content-encoding" not in answered.headers
    assert answered.body.decode() == SCRIPT


async def test_a_small_asset_is_never_compressed(folder: Path) -> None:
    assert "content-encoding" not in (await ask(Assets(folder), "style.css", accept_encoding="gzip")).headers


async def test_a_browser_with_the_current_asset_gets_304(folder: Path) -> None:
    assets = Assets(folder)
    tag = (await ask(assets, "main.js")).headers["etag"]
    again = await ask(assets, "main.js", if_none_match=tag)
    assert (again.status, again.body) == (304, b"")
    assert (await ask(assets, "main.js", if_none_match='"other"')).status == 200


async def test_an_asset_in_a_folder_keeps_its_path(folder: Path) -> None:
    """A module imports its neighbors by relative paths, so the folders must be in the addresses."""
    (folder / "views" / "list").mkdir(parents=True)
    (folder / "views" / "list" / "main.js").write_text("export {};", "utf-8")
    answered = await ask(Assets(folder), "views/list/main.js")
    assert (answered.body, answered.headers["content-type"]) == (b"export {};", "text/javascript; charset=utf-8")
    assert (await ask(Assets(folder), "main.js")).body.decode() == SCRIPT


def test_the_asset_prefix_changes_with_any_file_and_with_nothing_else(folder: Path) -> None:
    before = Assets(folder).prefix
    assert Assets(folder).prefix == before
    (folder / "style.css").write_text("p { }", "utf-8")
    changed = Assets(folder).prefix
    (folder / "style.css").rename(folder / "other.css")
    assert len({before, changed, Assets(folder).prefix}) == 3


def test_pages_contain_the_asset_prefix_and_escape_text(folder: Path) -> None:
    assets = Assets(folder)
    page = assets.page("index.html", {"message": "<script>'\"&{{assets}}"}).decode()
    assert f'src="{assets.prefix}/main.js"' in page
    assert "<p>&lt;script&gt;&#x27;&quot;&amp;{{assets}}</p>" in page


def test_pages_are_not_served_as_assets(folder: Path) -> None:
    assets = Assets(folder)
    assert {route.path for route in assets.routes()} == {
        f"{assets.prefix}/{name}" for name in ("main.js", "style.css", "icon.svg")
    }
    assert all(route.is_open for route in assets.routes())


def test_a_page_preloads_the_modules_that_its_own_script_imports(folder: Path) -> None:
    (folder / "index.html").write_text('{{modules}}<script type="module" src="{{assets}}/main.js"></script>', "utf-8")
    (folder / "list").mkdir()
    (folder / "list" / "main.js").write_text("export {};", "utf-8")
    assets = Assets(folder)
    assert assets.page("index.html").decode() == (
        f'<link rel="modulepreload" href="{assets.prefix}/list/main.js">'
        f'<script type="module" src="{assets.prefix}/main.js"></script>'
    )
