"""A request of 2026-07-28 is refused exactly when the SDK refuses it, with the same code."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from emceepee.server.envelope import HTTP_STATUS, refusal, repeated_header, unsupported_version
from emceepee.wire.json_rpc import Request
from emceepee.wire.protocol import (
    CLIENT_CAPABILITIES_META_KEY,
    METHOD_HEADER,
    NAME_HEADER,
    PROTOCOL_VERSION_META_KEY,
    VERSION_HEADER,
)

VERSIONS = st.sampled_from(["2026-07-28", "2025-11-25", 5, None])
METAS = st.dictionaries(st.sampled_from([PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY]), VERSIONS)
NAMES = st.sampled_from(["add", "äh", "", None, 5])
PARAMS = st.none() | st.fixed_dictionaries(
    {}, optional={"_meta": METAS | st.integers() | st.none(), "name": NAMES, "uri": NAMES}
)
METHODS = st.sampled_from(["tools/call", "resources/read", "tools/list"])
HEADERS = st.none() | st.fixed_dictionaries(
    {},
    optional={
        VERSION_HEADER: st.sampled_from(["2026-07-28", "2025-11-25", ""]),
        METHOD_HEADER: METHODS,
        NAME_HEADER: st.sampled_from(["add", "=?base64?w6Ro?=", "=?base64?w6R=?=", ""]),
    },
)


@given(METHODS, PARAMS, HEADERS)
def test_a_modern_request_is_refused_exactly_when_the_sdk_refuses_it(
    method: str, params: Any, headers: dict[str, str] | None
) -> None:
    theirs = inbound.classify_inbound_request({"method": method, "params": params}, headers=headers)
    ours = refusal(Request(1, method, params), headers)
    if isinstance(theirs, inbound.InboundLadderRejection):
        assert ours is not None
        assert (ours.code, ours.data) == (theirs.code, theirs.data)
    else:
        assert ours is None


@pytest.mark.parametrize("twice", [VERSION_HEADER, METHOD_HEADER, NAME_HEADER])
def test_a_routing_header_may_occur_only_once(twice: str) -> None:
    assert repeated_header([(twice, "a"), ("mcp-param-x", "1"), ("mcp-param-x", "2")]) is None
    assert repeated_header([(twice, "a"), (twice, "a")]) == twice


def test_an_unsupported_version_is_answered_with_the_supported_ones() -> None:
    assert unsupported_version("2026-07-28") is None
    unknown = unsupported_version("2031-01-01")
    assert unknown is not None
    assert unknown.data == {"supported": ["2026-07-28"], "requested": "2031-01-01"}


def test_error_codes_map_to_the_same_http_status_as_in_the_sdk() -> None:
    assert dict(inbound.ERROR_CODE_HTTP_STATUS) == HTTP_STATUS
