"""The protocol constants match those of the SDK, which is not imported at run time."""

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound, subscriptions
from mcp_types import methods, version

from emceepee.wire import protocol

TEXTS = st.text(max_size=40) | st.sampled_from(["=?base64?aGk=?=", "=?base64?aGl=?=", "=?base64?/w==?=", " a", "a\t"])


@pytest.mark.parametrize(
    "name",
    [
        *("JSONRPC_VERSION", "PARSE_ERROR", "INVALID_REQUEST", "METHOD_NOT_FOUND", "INVALID_PARAMS", "INTERNAL_ERROR"),
        *("REQUEST_TIMEOUT", "HEADER_MISMATCH", "UNSUPPORTED_PROTOCOL_VERSION", "PROTOCOL_VERSION_META_KEY"),
        *("CLIENT_INFO_META_KEY", "CLIENT_CAPABILITIES_META_KEY", "LOG_LEVEL_META_KEY", "SERVER_INFO_META_KEY"),
    ],
)
def test_protocol_codes_and_names_match_the_sdk(name: str) -> None:
    assert getattr(protocol, name) == getattr(mcp_types, name)


def test_protocol_versions_and_headers_match_the_sdk() -> None:
    assert version.HANDSHAKE_PROTOCOL_VERSIONS == protocol.HANDSHAKE_PROTOCOL_VERSIONS
    assert version.MODERN_PROTOCOL_VERSIONS == protocol.MODERN_PROTOCOL_VERSIONS
    assert mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY == protocol.MISSING_CLIENT_CAPABILITY
    assert subscriptions.SUBSCRIPTION_ID_META_KEY == protocol.SUBSCRIPTION_ID_META_KEY
    assert inbound.MCP_PROTOCOL_VERSION_HEADER == protocol.VERSION_HEADER
    assert inbound.MCP_METHOD_HEADER == protocol.METHOD_HEADER
    assert inbound.MCP_NAME_HEADER == protocol.NAME_HEADER
    assert inbound.MCP_PARAM_HEADER_PREFIX == protocol.PARAM_HEADER_PREFIX
    assert dict(inbound.NAME_BEARING_METHODS) == protocol.NAMED_BY


def test_every_client_method_of_the_sdk_is_known() -> None:
    """The tasks of 2025-11-25, and of the later extension, are missing in the list of the SDK."""
    beyond = protocol.CLIENT_METHODS - methods.SPEC_CLIENT_METHODS
    assert methods.SPEC_CLIENT_METHODS <= protocol.CLIENT_METHODS
    assert {method.partition("/")[0] for method in beyond} == {"tasks"}


@given(TEXTS)
def test_header_values_are_encoded_and_decoded_as_by_the_sdk(text: str) -> None:
    written = protocol.header_value(text)
    assert written == inbound.encode_header_value(text)
    assert protocol.text_of_header(written) == text
    assert protocol.text_of_header(text) == inbound.decode_header_value(text)
    assert protocol.text_of_header(None) is None


@pytest.mark.parametrize(
    "value", ["=?base64?\xe9?=", "=?base64?\u4e2d\u6587?=", "=?base64?/w==?=", "=?base64?aGl=?=", "=?base64?a?="]
)
def test_an_invalid_encoded_header_value_is_rejected(value: str) -> None:
    assert protocol.text_of_header(value) is None
