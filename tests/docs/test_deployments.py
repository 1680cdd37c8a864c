"""The systemd and Docker Compose files in the docs. Neither runs here, so the test parses them as they would."""

import configparser
import json
import re
import shlex
import subprocess
from typing import Any

from emceepee.cli.main import build_parser
from support.callers.conformance_suite import NODE
from support.documentation import ROOT, Page

PAGE = Page(ROOT / "docs" / "how-to" / "run-replicas.md")
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
# The parser with which the conformance suite reads its lists. Python's own library has none.
READ_YAML = """
import { parse } from "yaml";
import { readFileSync } from "node:fs";
process.stdout.write(JSON.stringify(parse(readFileSync(0, "utf8"), { merge: true })));
"""


def example(language: str) -> str:
    (body,) = (block.body for block in PAGE.blocks() if block.language == language)
    return body


def compose_services() -> dict[str, dict[str, Any]]:
    command = [str(NODE), "--input-type=module", "--eval", READ_YAML]
    parsed = subprocess.check_output(command, input=example("yaml"), cwd=ROOT / "tests/node", text=True)
    return dict(json.loads(parsed)["services"])


def replicas_of_compose() -> dict[str, list[str]]:
    """Their arguments, by name."""
    services = compose_services()
    assert re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE) == ['["emceepee"]']
    return {name: shlex.split(service["command"]) for name, service in services.items() if name.startswith("replica-")}


def test_redis_of_the_compose_file_persists_writes_and_evicts_nothing() -> None:
    command = compose_services()["redis"]["command"]
    assert command == ["redis-server", "--appendonly", "yes", "--maxmemory-policy", "noeviction"]
    assert compose_services()["redis"]["volumes"] == ["redis:/data"]


def test_each_replica_of_the_compose_file_waits_for_redis_and_has_the_key_and_a_token() -> None:
    services = compose_services()
    for name in replicas_of_compose():
        assert services[name]["depends_on"]["redis"] == {"condition": "service_healthy"}
        assert services[name]["environment"]["EMCEEPEE_STATE"] == "redis://redis:6379/0"
        assert {"EMCEEPEE_STATE_KEY", "EMCEEPEE_TOKEN"} <= services[name]["environment"].keys()
    assert [name for name, service in services.items() if "ports" in service] == ["nginx"]


def test_each_replica_of_the_compose_file_runs_the_image_of_the_checkout_with_its_configuration() -> None:
    assert "XDG_CONFIG_HOME=/etc " in DOCKERFILE
    services = compose_services()
    for name in replicas_of_compose():
        assert services[name]["build"] == "."
        assert services[name]["volumes"] == ["./servers.json:/etc/emceepee/config.json:ro"]


def test_each_replica_of_the_compose_file_has_a_unique_slot_and_address() -> None:
    options = {name: build_parser().parse_args(words) for name, words in replicas_of_compose().items()}
    assert {name: found.replica_slot for name, found in options.items()} == {"replica-1": 1, "replica-2": 2}
    for name, found in options.items():
        assert str(found.replica_listen).startswith(f"{name}:")


def unit() -> configparser.SectionProxy:
    reader = configparser.RawConfigParser()
    reader.read_string(example("ini").replace("\\\n", " "))
    return reader["Service"]


def test_the_systemd_unit_starts_emceepee_with_valid_options() -> None:
    program, *words = unit()["ExecStart"].replace("${ADDRESS}", "10.0.0.11").replace("%i", "1").split()
    assert program.endswith("/bin/emceepee")
    assert build_parser().parse_args(words).replica_slot == 1


def test_the_systemd_unit_waits_for_readiness_and_stops_only_the_main_process() -> None:
    assert unit()["ExecStartPost"].endswith("http://${ADDRESS}:8080/readyz")
    assert unit()["KillMode"] == "mixed"
