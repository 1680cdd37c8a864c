"""A tool's outcome as the result that goes back to the caller."""

from emceepee.codec import encode_text
from emceepee.errors import EmceepeeError
from emceepee.json_types import JsonObject
from emceepee.tools.declaration import BackendResult, Outcome


def reply(outcome: Outcome) -> JsonObject:
    """emceepee's own results as text and as structured content; a backend's result as it came."""
    if isinstance(outcome, BackendResult):
        return outcome.result
    return {"content": [text_block(encode_text(outcome))], "structuredContent": outcome}


def error_reply(error: EmceepeeError) -> JsonObject:
    """The sentence for the model, the code for a program."""
    return {"content": [text_block(str(error))], "isError": True, "structuredContent": {"error": error.body()}}


def text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}
