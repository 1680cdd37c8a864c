"""Files and diffs as they are shown to people."""

from time import process_time

import pytest

from emceepee.clients.file_mask import masked


@pytest.mark.parametrize(
    "line",
    [
        '+      "API_KEY": "s3cret"',
        '+ "env": {"GITHUB_TOKEN": "s3cret", "A": "b"}',
        '+ "headers": {"Authorization": "Bearer s3cret"}',
        '+ "X": "bearer s3cret"',
        '+ "args": ["--api-key", "s3cret"]',
        '+ "args": ["--token=s3cret"]',
        "+ [mcp_servers.a.env]\n+ API_KEY = 's3cret'",
        "+    password: s3cret",
        '+ "url": "https://ada:s3cret@x/y?key=s3cret"',
        "+ url: https://x/y?key=it's3cret",
        "+ # don't use https://x/y?a=a's3cret",
        '+ "url": "https://x/y?a=a\\"s3cret"',
        "+ path: /mcp?key=s3cret",
        '+ "url": "https://x/y?a=s3cret',
    ],
)
def test_no_secret_is_visible_in_a_diff_line(line: str) -> None:
    assert "s3cret" not in masked(line)
    assert "***" in masked(line)


def test_a_reference_to_a_secret_is_not_masked() -> None:
    line = '+ "Authorization": "Bearer ${env:TOKEN}", "keys": 3'
    assert masked(line) == line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('+ "url": "https://x/y?token=s3cret",\n', '+ "url": "https://x/y?token=***",\n'),
        ('+ "url": "https://x/y?a=s3cret&key=s3cret"\n+ }', '+ "url": "https://x/y?a=***&key=***"\n+ }'),
        ('+ {"url":"https://x?a=s3cret","b":["c","d"]}', '+ {"url":"https://x?a=***","b":["c","d"]}'),
        ("+ url = 'https://x/y?token=s3cret'  # mine", "+ url = 'https://x/y?token=***'  # mine"),
        ("+ url: https://x/y?token=s3cret\n+ b: c", "+ url: https://x/y?token=***\n+ b: c"),
    ],
)
def test_a_url_is_shown_without_its_query_values(line: str, shown: str) -> None:
    assert masked(line) == shown


@pytest.mark.parametrize(
    "line", ['"' + '\\"' * 20_000, "x" * 40_000, "a://" * 10_000, '"a' * 20_000, "?a" * 20_000, "passw" * 8_000]
)
def test_a_long_line_of_a_file_is_masked_quickly(line: str) -> None:
    began = process_time()
    masked(line)
    assert process_time() - began < 1
