"""A real nginx or HAProxy: one that runs a given configuration, and a plain balancer before some replicas."""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from support.system.certificates import self_signed
from support.system.ports import free_port
from support.waiting import eventually

BALANCERS = ["nginx", "haproxy"]
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


def adapt_example(name: str, text: str, folder: Path, *, port: int, addresses: Mapping[str, str]) -> str:
    """A configuration of the documentation, with a port, a certificate and the `addresses` that a test has instead."""
    text = text.replace(f"/etc/ssl/{EXAMPLE_NAME}.pem", str(self_signed(folder, names=(EXAMPLE_NAME,))))
    for documented, here in addresses.items():
        text = text.replace(documented, here)
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
    """The address of /mcp behind which each request goes to the next of these origins, proven and as a remote one.

    No request is sent twice, and no upstream is left out because it failed. `Host` is as the caller sends it: the
    loopback address is one that emceepee answers to.
    """
    port, addresses = free_port(), [urlsplit(upstream).netloc for upstream in upstreams]
    text = whole_nginx(_nginx(port, addresses, token), folder) if name == "nginx" else _haproxy(port, addresses, token)
    async with running_balancer(name, text, folder, port=port):
        yield f"http://127.0.0.1:{port}/mcp"


def _nginx(port: int, addresses: Sequence[str], token: str) -> str:
    servers = "\n".join(f"server {address} max_fails=0;" for address in addresses)
    return f"""
    upstream replicas {{
        {servers}
        keepalive 16;
    }}
    server {{
        listen 127.0.0.1:{port};
        client_max_body_size 4m;
        location / {{
            proxy_pass http://replicas;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
            proxy_set_header Authorization "Bearer {token}";
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_buffering off;
            proxy_next_upstream off;
            proxy_read_timeout 960s;
        }}
    }}"""


def _haproxy(port: int, addresses: Sequence[str], token: str) -> str:
    servers = "\n".join(f"    server replica{number} {address}" for number, address in enumerate(addresses))
    return f"""
defaults
    mode http
    retries 0
    option http-no-delay
    timeout connect 5s
    timeout client 960s
    timeout server 960s

frontend public
    bind 127.0.0.1:{port}
    option forwardfor
    http-request set-header Authorization "Bearer {token}"
    http-request set-header X-Forwarded-Proto http
    default_backend replicas

backend replicas
    balance roundrobin
    http-reuse always
{servers}
"""
