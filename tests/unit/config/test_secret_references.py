import os
import sys
from pathlib import Path
from time import perf_counter

import pytest

from emceepee.config import secret_references
from emceepee.config.secret_references import (
    LARGEST_FILE,
    BadReference,
    References,
    ask_platform_keyring,
    literal_secrets,
)

KEYRING = {("tracker", "ada"): "s3cret", ("https://tracker.example/api", "ada"): "0ther"}


def ask(service: str, name: str) -> str | None:
    return KEYRING.get((service, name))


@pytest.fixture
def references(tmp_path: Path) -> References:
    return References(environment={"TOKEN": "t0", "EMPTY": ""}, folder=tmp_path, ask_keyring=ask)


def problem(references: References, text: str) -> str:
    with pytest.raises(BadReference) as refused:
        references.resolve(text)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("plain", "plain"),
        ("Bearer ${TOKEN}", "Bearer t0"),
        ("${env:TOKEN}", "t0"),
        ("${TOKEN}${env:TOKEN}", "t0t0"),
        ("[${EMPTY}]", "[]"),
        ("${EMPTY:-fallback}", "fallback"),
        ("${env:MISSING:-fall back}", "fall back"),
        ("${MISSING:-}", ""),
        ("${env:-a variable called env}", "a variable called env"),
        ("${file:-a variable called file}", "a variable called file"),
        ("${keyring:tracker/ada}", "s3cret"),
        ("${keyring:https://tracker.example/api/ada}", "0ther"),
    ],
)
def test_a_reference_is_resolved_to_its_value(text: str, resolved: str, references: References) -> None:
    assert references.resolve(text) == resolved


@pytest.mark.parametrize("text", ["${x:0:3}", "${x:+y}", "${x:?y}", "${#x}", "$TOKEN", "${}", "${a-b}", "${TOKEN", "$"])
def test_text_that_is_not_a_reference_stays_unchanged(text: str, references: References) -> None:
    assert references.resolve(text) == text


def test_the_value_of_a_reference_is_not_resolved_again(references: References, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("${TOKEN}")
    assert references.resolve("${file:secret}") == "${TOKEN}"


@pytest.mark.parametrize(
    ("content", "secret"),
    [
        (b"s3cret\n", "s3cret"),
        (b"s3cret\r\n", "s3cret"),
        (b" s3\ncret \n\n", " s3\ncret \n"),
        (b"", ""),
        (b"\xc3\xbc", "ü"),
    ],
)
def test_a_secret_file_is_read_without_its_final_line_break(
    content: bytes, secret: str, references: References, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(content)
    assert references.resolve("${file:secret}") == secret
    assert references.resolve(f"${{file:{tmp_path}/secret}}") == secret


def test_a_secret_file_path_may_start_with_the_home_directory(
    references: References, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "1.txt").write_text("s3cret")
    assert references.resolve("${file:~/1.txt}") == references.resolve("${file:1.txt}") == "s3cret"


def test_a_missing_oversized_or_binary_secret_file_is_named(references: References, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (LARGEST_FILE + 1))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert problem(references, "${file:gone}").startswith(f"there is no file {tmp_path}/gone; write the secret to it")
    large = f"the file {tmp_path}/large cannot be read: it is larger than {LARGEST_FILE >> 10} KiB"
    assert problem(references, "${file:large}") == large
    assert problem(references, "${file:binary}") == f"the file {tmp_path}/binary cannot be read: it is no text in UTF-8"
    assert problem(references, f"${{file:{tmp_path}}}") == f"the file {tmp_path} cannot be read: Is a directory"


@pytest.mark.parametrize("opens_files", [True, False])
def test_only_regular_files_are_read_as_secrets_and_no_pipe_blocks(tmp_path: Path, opens_files: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    references = References(environment={}, folder=tmp_path, opens_files=opens_files)
    for name in ("pipe", "/dev/zero"):
        assert problem(references, f"${{file:{name}}}").endswith("cannot be read: it is not a regular file")
    assert "embedded null byte" in problem(references, "${file:a\0b}")
    assert problem(references, "${file:~no-such-user/x}").startswith("there is no file")


def test_a_secret_file_that_may_not_be_opened_is_only_checked_for_existence(tmp_path: Path) -> None:
    references = References(environment={}, folder=tmp_path, opens_files=False)
    (tmp_path / "secret").write_text("s3cret")
    assert references.resolve("a ${file:secret} b") == "a  b"
    assert problem(references, "${file:gone}").startswith("there is no file")
    (tmp_path / "large").write_bytes(b"x" * (LARGEST_FILE + 1))
    assert "it is larger than" in problem(references, "${file:large}")


@pytest.mark.parametrize("text", ["${env:" * 200_000, "${" * 500_000, "${a" * 300_000 + " }", "${x:-" * 200_000])
def test_unterminated_references_are_processed_in_linear_time(text: str, references: References) -> None:
    began = perf_counter()
    assert references.resolve(text) == text
    assert perf_counter() - began < 5


@pytest.mark.parametrize("text", ["${MISSING}", "${env:MISSING}"])
def test_a_missing_variable_is_reported_with_the_syntax_for_a_default(text: str, references: References) -> None:
    expected = "the environment has no variable MISSING; set it, or write ${MISSING:-default}"
    assert problem(references, text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${filee:secret}", "${filee:secret} is not a reference: filee is not a supported source; did you mean file?"),
        ("${ENV:TOKEN}", "ENV is not a supported source; did you mean env?"),
        ("${vault:/a/b}", "vault is not a supported source; there are env, file, keyring"),
        ("${env:}", "has no variable name"),
        ("${env:a b}", "has no variable name"),
        ("${keyring:tracker}", "write ${keyring:SERVICE/NAME}"),
        ("${keyring:/ada}", "write ${keyring:SERVICE/NAME}"),
        (
            "${keyring:tracker/bob}",
            "no secret for tracker/bob; store it with keyring set tracker bob",
        ),
    ],
)
def test_an_unresolvable_reference_is_reported_with_advice(text: str, words: str, references: References) -> None:
    assert words in problem(references, text)


# The platform's keyring, with the real package.


class _Keyring:
    """The keyring that the package uses as that of the platform."""

    priority = 1

    def get_password(self, service: str, name: str) -> str | None:
        if service == "locked":
            raise RuntimeError("it is locked\nand more of that")
        return KEYRING.get((service, name))


@pytest.fixture
def platform_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring.core

    monkeypatch.setattr(keyring.core, "_keyring_backend", _Keyring())


@pytest.mark.usefixtures("platform_keyring")
def test_a_keyring_reference_asks_the_keyring_of_the_platform() -> None:
    assert ask_platform_keyring("tracker", "ada") == "s3cret"
    assert ask_platform_keyring("tracker", "bob") is None
    with pytest.raises(BadReference, match=r"^the keyring cannot be read for locked/ada: it is locked$"):
        ask_platform_keyring("locked", "ada")


@pytest.mark.usefixtures("platform_keyring")
def test_a_keyring_that_does_not_answer_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    waiting = threading.Event()
    monkeypatch.setattr(_Keyring, "get_password", lambda *_: waiting.wait(20))
    monkeypatch.setattr(secret_references, "KEYRING_SECONDS", 0.01)
    with pytest.raises(BadReference, match=r"did not answer within 0.01 s; unlock it first"):
        ask_platform_keyring("tracker", "ada")
    waiting.set()


def test_without_the_keyring_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(BadReference, match=r"install emceepee\[keyring\]"):
        ask_platform_keyring("tracker", "ada")


# Secrets in plain text.


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("headers", "Authorization"),
        ("headers", "X-API-Key"),
        ("headers", "apikey"),
        ("headers", "X-Auth-Token"),
        ("headers", "Cookie"),
        ("env", "GITHUB_TOKEN"),
        ("env", "AWS_SECRET_ACCESS_KEY"),
        ("env", "CLIENT_SECRET"),
        ("env", "DB_PASSWORD"),
        ("env", "GITLAB_PAT"),
        ("env", "TOKEN"),
    ],
)
def test_a_secret_in_plain_text_is_detected_by_its_name(part: str, name: str) -> None:
    assert list(literal_secrets({part: {name: "s3cret", "OTHER": "x"}}, "mcpServers.a")) == [
        f"mcpServers.a.{part}.{name}"
    ]
    for harmless in ("Bearer ${TOKEN}", "", " ", 7, None):
        assert list(literal_secrets({part: {name: harmless}}, "a")) == []


@pytest.mark.parametrize(
    "entry",
    [
        {"headers": {"Accept": "x", "X-Keyboard": "x", "Tokenizer": "x"}, "env": {"KEYS_DIR": "x", "MONKEY": "x"}},
        {"headers": ["Authorization"], "env": "TOKEN"},
        {"url": "https://tracker.example/mcp?at=12:00@noon"},
        {"url": "https://ada@tracker.example/mcp"},
        {"url": "https://ada:${PASSWORD}@tracker.example/mcp"},
    ],
)
def test_a_value_without_a_secret_is_not_reported(entry: dict[str, object]) -> None:
    assert list(literal_secrets(entry, "a")) == []


def test_a_password_in_a_url_is_detected() -> None:
    assert list(literal_secrets({"url": "https://ada:s3cret@tracker.example/mcp"}, "a")) == ["a.url"]
