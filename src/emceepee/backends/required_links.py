"""Links that a server wants its user to open before it serves a request: error -32042 of the protocol."""

from typing import Any

from emceepee.backends.oauth.metadata.well_known import LONGEST_URL
from emceepee.backends.spec import one_line
from emceepee.errors import LinksNeeded
from emceepee.surface import call_to
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import URL_ELICITATION_REQUIRED

MOST_LINKS = 5  # of one error
LONGEST_MESSAGE = 500  # characters
_SCHEMES = ("https://", "http://")


def required_links(error: JsonObject) -> tuple[JsonObject, ...]:
    """Return the links of a JSON-RPC error, each as the parameters of an elicitation, `MOST_LINKS` at most."""
    if error.get("code") != URL_ELICITATION_REQUIRED:
        return ()
    data = error.get("data")
    listed = data.get("elicitations") if isinstance(data, dict) else None
    found = [_link(entry) for entry in listed[:MOST_LINKS]] if isinstance(listed, list) else []
    return tuple(link for link in found if link is not None)


def links_needed(server: str, method: str, links: tuple[JsonObject, ...], error: JsonObject) -> LinksNeeded:
    shown = "".join(f" {link['message']} {link['url']}" for link in links)
    what = "a link" if len(links) == 1 else f"{len(links)} links"
    return LinksNeeded(
        f'Server "{server}" did not run {method}, because the user has to open {what} first. Show it to the user, and '
        f"call again when they are done there. {call_to('get_elicitations')} lists it as a question.{shown}",
        details={"server": server, "error": error},
        links=links,
    )


def _link(entry: Any) -> JsonObject | None:
    if not isinstance(entry, dict) or entry.get("mode", "url") != "url":
        return None
    url, given, message = entry.get("url"), entry.get("elicitationId"), entry.get("message")
    if not isinstance(url, str) or len(url) > LONGEST_URL or not url.isprintable() or " " in url:
        return None
    if not url.lower().startswith(_SCHEMES):
        return None
    link: JsonObject = {"mode": "url", "url": url}
    link["message"] = one_line(message, LONGEST_MESSAGE) if isinstance(message, str) else ""
    return link | ({"elicitationId": given[:LONGEST_MESSAGE]} if isinstance(given, str) else {})
