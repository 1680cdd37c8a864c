"""The published schema of the configuration file accepts and rejects the same files as emceepee."""

import json
from typing import Any

import jsonschema
import pytest

from emceepee.config.former_limits import FORMER_LIMITS
from support.documentation import ROOT, Page

SCHEMA = json.loads((ROOT / "docs" / "reference" / "config.schema.json").read_text("utf-8"))
KEYS = {"servers", "mcpServers", "mcpClients", "limits"}


def configurations() -> list[Any]:
    """Every example of a configuration file in the docs."""
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in Page(path).blocks():
            if block.language == "json":
                document = json.loads(block.body)
                if isinstance(document, dict) and KEYS & document.keys():
                    found.append(document)
    return found


def test_the_schema_in_the_package_equals_the_published_one() -> None:
    assert json.loads((ROOT / "src" / "emceepee" / "config" / "config.schema.json").read_text("utf-8")) == SCHEMA


def test_the_schema_accepts_limits_of_earlier_versions_as_deprecated() -> None:
    assert FORMER_LIMITS
    for name in FORMER_LIMITS:
        jsonschema.validate({"limits": {name: -1}}, SCHEMA)
        assert SCHEMA["properties"]["limits"]["properties"][name]["deprecated"] is True


def test_the_published_schema_is_a_valid_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_configuration_example_in_the_docs_matches_the_schema() -> None:
    examples = configurations()
    assert len(examples) > 10
    for example in examples:
        jsonschema.validate(example, SCHEMA)


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {"one": {"url": 5}}},
        {"servers": [{"url": "http://one.test"}]},
        {"limits": {"no_such_limit": 1}},
        {"limits": {"connect_seconds": -1}},
        {"limits": {"idle_stop_seconds": 1e-9}},
        {"limits": {"request_headers": 1}},
        {"logLevel": "loud"},
        {"mcpServers": {"one": {"command": "x", "tags": ["two words"]}}},
        {"mcpServers": {"one": {"command": "x", "disabled": "yes"}}},
    ],
)
def test_an_invalid_configuration_does_not_match_the_schema(document: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)
