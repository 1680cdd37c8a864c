"""A real nginx or HAProxy that runs a given configuration, or one that the documentation prints."""

import asyncio
import os
import re
import shutil
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from support.documentation import ROOT, Page
from support.system.certificates import self_signed
from support.system.ports import free_port
from support.waiting import eventually

BALANCERS = ["nginx", "haproxy"]
ONE_PROCESS = Page(ROOT / "docs" / "how-to" / "serve-over-http.md")
REPLICAS = Page(ROOT / "docs" / "how-to" / "run-replicas.md")
REPLICA_ADDRESSES = ("10.0.0.11:8080", "10.0.0.12:8080")  # in the examples of that page
EXAMPLE_NAME = "mcp.example.com"  # under which callers know the balancers of the documentation
STOP_SECONDS = 10.0
_ARGUMENTS = {"nginx": ("-g", "daemon off;", "-c"), "haproxy": ("-q", "-db", "-f")}
_NGINX_FILES = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def find_program(name: str) -> str:
    """Servers lie where only root looks for programs."""
    found = shutil.which(name, path=os.pathsep.join([os.environ["PATH"], "/usr/local/sbin", "/usr/sbin"]))
    assert found is not None, f"{name} is not installed: make programs"
    return found


def whole_nginx(http: str, folder: Path) -> str:
    """A configuration around what stands in `http`, with all files in the folder."""
    user = "" if os.geteuid() else "user root;"  # its workers would not be allowed into the test's folder
    own = f"{user} pid {folder}/pid; error_log {folder}/errors; events {{}}"
    files = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in _NGINX_FILES)
    return f"{own}\nhttp {{\naccess_log off;\n{files}\n{http}\n}}\n"


def documented(page: Page, name: str, label: str = "") -> str:
    """Return the configuration that a page prints for nginx or HAProxy."""
    (found,) = (block.body for block in page.blocks() if (block.language, block.label) == (name, label))
    return found


def adapt_example(
    name: str, text: str, folder: Path, *, port: int, addresses: Mapping[str, str], has_tls: bool = True
) -> str:
    """Put a test's port, certificate and addresses into a configuration of the documentation, and nothing else."""
    for example, here in addresses.items():
        assert example in text
        text = text.replace(example, here)
    if has_tls:
        text = text.replace(f"/etc/ssl/{EXAMPLE_NAME}.pem", str(self_signed(folder, names=(EXAMPLE_NAME,))))
    else:
        text = re.sub(r" ssl_certificate\S* [^\n]*\n", "", text)
        text = re.sub(r"(listen|bind) (\S+) ssl[^;\n]*", r"\1 \2", text)
    if name == "haproxy":
        return text.replace("bind :443", f"bind 127.0.0.1:{port}")
    return whole_nginx(text.replace("listen 443", f"listen 127.0.0.1:{port}"), folder)


@asynccontextmanager
async def running_balancer(name: str, configuration: str, folder: Path, *, port: int) -> AsyncIterator[None]:
    """The program runs with that configuration, which makes it listen on the port of this machine."""
    file = folder / f"{name}.conf"
    file.write_text(configuration, "utf-8")
    process = await asyncio.create_subprocess_exec(find_program(name), *_ARGUMENTS[name], str(file))

    def listens() -> bool:
        assert process.returncode is None, f"{name} ended at once"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        await eventually(listens, what=f"{name} listens")
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), STOP_SECONDS)


@asynccontextmanager
async def balancer(name: str, upstreams: Sequence[str], folder: Path, *, token: str) -> AsyncIterator[str]:
    """Yield the address of /mcp behind the balancer that the documentation puts before two replicas.

    The balancer also adds the token, for callers that have none, and speaks no TLS. `Host` may be the loopback address,
    to which emceepee answers.
    """
    port, addresses = free_port(), [urlsplit(upstream).netloc for upstream in upstreams]
    text = with_token(name, documented(REPLICAS, name), token)
    replaced = dict(zip(REPLICA_ADDRESSES, addresses, strict=True))
    text = adapt_example(name, text, folder, port=port, addresses=replaced, has_tls=False)
    async with running_balancer(name, text, folder, port=port):
        yield f"http://127.0.0.1:{port}/mcp"


def with_token(name: str, text: str, token: str) -> str:
    """Return the configuration with one more header on each request."""
    if name == "nginx":
        before, added = 'proxy_set_header Connection "";\n', f'proxy_set_header Authorization "Bearer {token}";\n'
    else:
        before, added = "option forwardfor\n", f'http-request set-header Authorization "Bearer {token}"\n'
    assert text.count(before) == 1
    return text.replace(before, f"{before}    {added}")
