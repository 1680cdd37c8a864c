import json
from pathlib import Path
from typing import Any

import pytest

from emceepee.cli.serve.config_digest import digest

ENTRY = {"url": "http://one.test/${TENANT}"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "servers.json"
    made.write_text(json.dumps({"mcpServers": {"one": ENTRY}}))
    return made


def of(file: Path, *, here: Path | None = None, tenant: str = "red", **options: Any) -> str:
    environment = {"HOME": "/home/ann", "TENANT": tenant}
    return digest({"config": str(file), **options}, environment, here or file.parent)


def test_the_config_digest_depends_on_the_content_and_not_the_spelling_of_a_file(file: Path) -> None:
    before = of(file)
    assert of(Path(file.name), here=file.parent) == before
    file.write_text('// ours\n{"mcpServers": {"one": ' + json.dumps(ENTRY) + ",},}")
    assert of(file) == before


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 500 + "1" + "}" * 500])
def test_a_file_that_is_nested_too_deeply_has_a_stable_digest(text: str, file: Path) -> None:
    before = of(file)
    file.write_text(text)
    assert of(file) == of(file) != before


def test_the_config_digest_differs_for_another_file_with_the_same_servers(file: Path) -> None:
    copy = file.with_name("copy.json")
    copy.write_text(file.read_text())
    assert of(copy) != of(file)


def test_the_config_digest_includes_referenced_variables(file: Path) -> None:
    assert of(file, tenant="blue") != of(file, tenant="red")
    file.write_text("// ours\n" + file.read_text())
    assert of(file, tenant="blue") != of(file, tenant="red")


@pytest.mark.parametrize(
    "flag",
    [
        {"surface": "lite"},
        {"no_codemode": True},
        {"max_result_bytes": 1000},
        {"notices": "blocks"},
        {"state": "memory"},
        {"root": ["."]},
    ],
)
def test_the_config_digest_includes_every_flag_that_callers_notice(file: Path, flag: dict[str, Any]) -> None:
    assert of(file, **flag) != of(file)


def test_the_config_digest_ignores_log_settings(file: Path) -> None:
    assert of(file, log_file="elsewhere", log_level="debug", idle_exit=1.0) == of(file)


def test_a_broken_file_has_a_stable_digest(file: Path) -> None:
    file.write_text("{")
    before = of(file)
    assert of(file) == before
    file.unlink()
    assert of(file) != before
