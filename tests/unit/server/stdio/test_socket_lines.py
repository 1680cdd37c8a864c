"""A line counts only with its line ending, because the peer sends an incomplete line again."""

from emceepee.server.stdio.socket_lines import SocketLines

WHOLE, CUT = b'{"jsonrpc": "2.0", "id": 1}', b'{"jsonrpc": "2.0", "id": 2}'


async def test_an_incomplete_line_is_dropped_when_the_connection_is_lost() -> None:
    lines = SocketLines(1000)
    lines.data_received(WHOLE + b"\n" + CUT)
    lines.connection_lost(ConnectionResetError())
    assert [await lines.read(), await lines.read()] == [WHOLE, b""]


async def test_an_incomplete_line_is_dropped_when_the_caller_stops_sending() -> None:
    lines = SocketLines(1000, WHOLE[:5])
    lines.data_received(WHOLE[5:] + b"\n" + CUT)
    assert lines.eof_received()  # the connection stays open for answers
    assert [await lines.read(), await lines.read()] == [WHOLE, b""]
