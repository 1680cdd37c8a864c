import pytest

from emceepee.backends.http1.http_client import encode_headers


def test_fields_become_lines() -> None:
    assert (
        encode_headers({"accept": "a, b", "x-name": "é", "empty": ""}) == b"accept: a, b\r\nx-name: \xe9\r\nempty: \r\n"
    )
    assert encode_headers({}) == b""


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\r\nb", "ä", "a\0"])
def test_a_name_that_is_no_token_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a header"):
        encode_headers({name: "x"})


@pytest.mark.parametrize("value", ["s3cret\r\nx: y", "s3cret\n", "s3cret\r", "s3cret\0"])
def test_a_value_that_would_break_out_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(ValueError, match="the header x has a line break or a null byte in it") as refusal:
        encode_headers({"x": value})
    assert "s3cret" not in str(refusal.value)


def test_a_character_that_http_cannot_carry_is_refused_by_the_name_of_its_header() -> None:
    with pytest.raises(ValueError, match="the header x has a character that HTTP cannot carry") as refusal:
        encode_headers({"a": "é", "x": "s3cret€"})
    assert "s3cret" not in str(refusal.value)
