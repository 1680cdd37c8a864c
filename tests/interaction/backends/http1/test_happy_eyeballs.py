import socket

import pytest

from emceepee.backends.http1.happy_eyeballs import open_socket


async def test_happy_eyeballs_reaches_a_real_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = listener.getsockname()
        with await open_socket([(socket.AF_INET, place)]) as sock:
            assert sock.getpeername() == place
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    with pytest.raises(ConnectionRefusedError):
        await open_socket([(socket.AF_INET, place)])
