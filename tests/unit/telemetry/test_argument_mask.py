"""Which arguments of a program are visible, wherever they are shown."""

import json
from pathlib import Path
from time import process_time

import pytest

from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.cli.main import main
from emceepee.clients.changes import FileChange
from emceepee.console.server_actions import masked_entry
from emceepee.telemetry.argument_mask import masked_arguments

SIZE = 64_000
WITH_SECRETS = [
    (["--token", "s3cret"], ["--token", "***"]),
    (["--api-key=s3cret"], ["--api-key=***"]),
    (["--api-key=s3cret,s3cret}"], ["--api-key=***"]),
    (["--header", "Authorization: Bearer s3cret"], ["--header", "Authorization: ***"]),
    (["--header=X-Api-Key: s3cret"], ["--header=X-Api-Key: ***"]),
    (["--header", "X-Auth: s3cret"], ["--header", "X-Auth: ***"]),
    (["-H", "X-Auth:s3cret"], ["-H", "X-Auth:***"]),
    (["--env=GITHUB_TOKEN=s3cret"], ["--env=GITHUB_TOKEN=***"]),
    (["--env=PGPASS=s3cret"], ["--env=PGPASS=***"]),
    (["run", "-e", "PGPASS=s3cret", "image"], ["run", "-e", "PGPASS=***", "image"]),
    (["-eMY_TOKEN=s3cret"], ["-eMY_TOKEN=***"]),
    (["--pat", "s3cret"], ["--pat", "***"]),
    (["-p", "s3cret"], ["-p", "***"]),
    (["--dbPassword", "--s3cret"], ["--dbPassword", "***"]),
    (["--auth", "Bearer s3cret"], ["--auth", "Bearer ***"]),
    (["postgresql://u:s3cret@db/x?key=s3cret"], ["postgresql://***@db/x?key=***"]),
    (["--url=https://u:s3cret@h/"], ["--url=https://***@h/"]),
    (['{"apiKey": "s3cret"}'], ['{"apiKey": ***']),
    (["--token", "two\nlines s3cret"], ["--token", "***"]),
    (["--token=${TOKEN:-s3cret}"], ["--token=***"]),
]
WITHOUT = [
    ["-y", "@scope/package@1.2.3", "--verbose", ""],
    ["--name=x", "--path", "/srv/data", "--max-tokens", "5", "--port=8080"],
    ["-p", "8080"],
    ["-p", "127.0.0.1:8080:80/tcp"],
    ["-p", "@scope/package@1", "run"],
    ["--header", "Authorization: Bearer ${env:TOKEN}", "--token", "${TOKEN}", "--key=${file:/run/key}", "-e", "A=${A}"],
    ["-c", "import x\nx.run()"],
    ["-e", "NAME"],
    ['{ "note": "no secret" }'],
]


@pytest.mark.parametrize(("args", "shown"), WITH_SECRETS)
def test_secret_arguments_are_masked_wherever_they_are_shown(
    args: list[str], shown: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert masked_arguments(args) == shown
    assert masked_entry(BackendSpec(name="s", target=StdioTarget(command="c", args=tuple(args))))["args"] == shown
    content = json.dumps({"mcpServers": {"s": {"command": "c", "args": args}}}, indent=2).encode()
    (file := tmp_path / "x.json").write_bytes(content)
    assert main(["--config", str(file), "servers", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["servers"][0]["where"] == " ".join(["c", *shown])
    for before, after in ((content, None), (None, content), (content, content + b"\n"), (content, b"//\n" + content)):
        assert "s3cret" not in FileChange(path=file, before=before, after=after).diff()


@pytest.mark.parametrize("args", WITHOUT)
def test_arguments_without_secrets_are_shown_unchanged(args: list[str], tmp_path: Path) -> None:
    assert masked_arguments(args) == args
    assert masked_entry(BackendSpec(name="s", target=StdioTarget(command="c", args=tuple(args))))["args"] == args
    content = json.dumps({"args": args})
    assert f"+{content}\n" in FileChange(path=tmp_path / "x.json", before=None, after=content.encode()).diff()


@pytest.mark.parametrize(
    "word",
    [
        *("a=" * SIZE, "a: " * SIZE, "a" * SIZE, " " * SIZE, "a " * SIZE, "token" * SIZE, "-" * SIZE, "${" * SIZE),
        *("token=" + "${a}" * SIZE + "x", "bearer " * SIZE, "bearer" + " " * SIZE, "://" * SIZE, "a" + " " * SIZE),
    ],
    ids=lambda word: word[:14],
)
def test_a_long_argument_is_masked_quickly(word: str) -> None:
    began = process_time()
    masked_arguments(["--header", word, "-p", word, word])
    assert process_time() - began < 2
