import pytest

from emceepee.backends.http1.http_client import encode_headers


def test_headers_are_encoded_as_lines() -> None:
    assert (
        encode_headers({"accept": "a, b", "x-name": "é", "empty": ""}) == b"accept: a, b\r\nx-name: \xe9\r\nempty: \r\n"
    )
    assert encode_headers({}) == b""


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\r\nb", "ä", "a\0"])
def test_an_invalid_header_name_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a header"):
        encode_headers({name: "x"})


@pytest.mark.parametrize("value", ["s3cret\r\nx: y", "s3cret\n", "s3cret\r", "s3cret\0"])
def test_a_header_value_with_a_line_break_is_rejected_without_showing_it(value: str) -> None:
    with pytest.raises(ValueError, match="the header x has a line break or a null byte in it") as refusal:
        encode_headers({"x": value})
    assert "s3cret" not in str(refusal.value)


def test_a_header_value_with_a_character_outside_latin_1_is_rejected_by_header_name() -> None:
    with pytest.raises(ValueError, match="the header x has a character that HTTP cannot carry") as refusal:
        encode_headers({"a": "é", "x": "s3cret€"})
    assert "s3cret" not in str(refusal.value)
