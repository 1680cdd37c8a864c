"""Turning a request away before it is known to be one."""

from emceepee.json_rpc import error_message
from emceepee.web.asgi import Header, Send, respond_json


async def send_rpc_error(send: Send, status: int, code: int, message: str, *headers: Header) -> None:
    """An answer to no request in particular."""
    await respond_json(send, status, error_message(None, code, message), *headers)
