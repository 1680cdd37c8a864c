"""Whether a caller's system has taken what was written, and closing a connection once it has.

A system may wait 40 ms or more before it acknowledges what it took, and from another machine the acknowledgement is a
round trip away. Whoever closes right after a response would therefore find bytes that nobody has acknowledged, though
they are about to be read.
"""

import fcntl
import socket
import struct
import termios
from asyncio import AbstractEventLoop, BaseTransport, Transport

CHECK_SECONDS = 0.05  # about as long as a system puts an acknowledgement off
MOST_CHECKS = 20  # a second in all: also for one that is far away and lost a packet


def is_unread(transport: BaseTransport) -> bool:
    """Whether the other side has not taken all that was sent: its system refused it, or has not acknowledged it."""
    sock: socket.socket = transport.get_extra_info("socket")
    try:
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return True
        waiting = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")  # on a socket: bytes not acknowledged
    except OSError:
        return False
    return bool(struct.unpack("i", waiting)[0])


def close_when_acknowledged(transport: Transport, loop: AbstractEventLoop) -> None:
    """Close at once if all was acknowledged; else say that nothing more comes, and close when it is, or will not be."""
    if not _is_on_its_way(transport):
        transport.close()
        return
    if transport.can_write_eof():  # from now on, this too has to be acknowledged
        transport.write_eof()
    loop.call_later(CHECK_SECONDS, _check, transport, loop, MOST_CHECKS)


def _check(transport: Transport, loop: AbstractEventLoop, checks_left: int) -> None:
    if transport.is_closing():  # by the caller
        return
    if transport.get_write_buffer_size():  # a slow reader, for whom the connection itself has a limit
        loop.call_later(CHECK_SECONDS, _check, transport, loop, checks_left)
    elif checks_left and is_unread(transport):
        loop.call_later(CHECK_SECONDS, _check, transport, loop, checks_left - 1)
    else:
        transport.close()


def _is_on_its_way(transport: Transport) -> bool:
    return bool(transport.get_write_buffer_size()) or is_unread(transport)
