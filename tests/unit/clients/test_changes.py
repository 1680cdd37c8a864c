"""Changes of files as they are shown to people."""

from pathlib import Path

import pytest

from emceepee.clients.changes import FileChange


def diff_of(before: str | None, after: str | None) -> str:
    encoded = [None if text is None else text.encode() for text in (before, after)]
    return FileChange(path=Path("/x.json"), before=encoded[0], after=encoded[1]).diff()


def test_a_diff_has_two_lines_of_context_around_each_change() -> None:
    before = "".join(f"line {number}\n" for number in range(1, 13))
    after = before.replace("line 3\n", "").replace("line 10\n", "line 10\nmore\n") + "end"
    assert diff_of(before, after) == (
        "--- /x.json\n+++ /x.json\n"
        "@@ -1,5 +1,4 @@\n line 1\n line 2\n-line 3\n line 4\n line 5\n"
        "@@ -9,4 +8,6 @@\n line 9\n line 10\n+more\n line 11\n line 12\n+end\n"
    )
    assert diff_of(None, "one\n") == "--- /x.json\n+++ /x.json\n@@ -0,0 +1 @@\n+one\n"
    assert diff_of("one", None) == "--- /x.json\n+++ /x.json\n@@ -1 +0,0 @@\n-one\n"
    assert diff_of("one", "one\n") == "--- /x.json\n+++ /x.json\n@@ -1 +1 @@\n-one\n+one\n"
    assert diff_of("one", "one") == diff_of(None, None) == ""


def test_a_secret_in_a_diff_is_masked_even_if_its_option_name_is_not_shown() -> None:
    before = '{"args": [\n"--token",\n"s3cret",\n"-v",\n"-x"\n]}\n'
    shown = diff_of(before, before.replace('"-x"', '"-y"'))
    assert "s3cret" not in shown
    assert '"--token"' not in shown


def test_a_secret_in_a_diff_is_masked_before_and_after_its_change() -> None:
    before = '{"args": [\n"--token", // mine\n"s3cret"\n]}\n'
    shown = diff_of(before, before.replace("s3cret", "s3cret2"))
    assert "s3cret" not in shown
    assert (shown.count('-"***"'), shown.count('+"***"')) == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "args:\n  - --token\n  - s3cret\n",
        'args:\n  - "--token"\n  - s3cret\n',
        "args:\n  - --header\n  - 'X-Auth: s3cret'\n",
        "args:\r\n  - --token  # mine\r\n  - it's3cret # mine\r\n",
        "args:\n  - --env=PGPASS=s3cret\n",
        'args = [\n  "--token", # mine\n  "s3cret",\n]\n',
        "args = ['--token', 's3cret']\n",
        'args = ["--token", "\\U0001F600s3cret"]\n',
    ],
)
def test_secret_arguments_are_masked_in_the_files_of_every_client(text: str) -> None:
    assert "s3cret" not in diff_of(None, text)
