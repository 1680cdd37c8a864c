"""Installed packages are pinned with hashes, and no range allows a vulnerable version."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.documentation import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TO_RUN = [Requirement(text) for text in PROJECT["dependencies"]]
TO_DEVELOP = [Requirement(text) for text in PROJECT["optional-dependencies"]["dev"]]
PINNED = ROOT / "requirements.txt"
IMAGE = ROOT / "deploy" / "run.txt"
LISTS = [
    PINNED,
    IMAGE,
    *sorted((ROOT / "tests" / "clients").glob("*.txt")),
    *sorted((ROOT / "bench" / "peers").glob("*.txt")),
]
# The last version with each, as far as it matters here.
HOLES = {
    ("aiohttp", "3.14.2"): "CVE-2026-59881, CVE-2026-69243, CVE-2026-69244",
    ("cryptography", "49.0.0"): "CVE-2026-69247",
    ("orjson", "3.11.5"): "CVE-2025-67221",
    ("PyJWT", "2.10.0"): "CVE-2024-53861",
    ("PyJWT", "2.11.0"): "CVE-2026-32597",
    ("PyJWT", "2.12.1"): "CVE-2026-48522 to CVE-2026-48526",
}


class Pin(NamedTuple):
    requirement: Requirement
    hashes: list[str]


def pins(listed: Path) -> list[Pin]:
    lines = listed.read_text("utf-8").replace("\\\n", " ").splitlines()
    pinned = [line.split(" --hash=") for line in lines if not line.startswith("#")]
    return [Pin(Requirement(first), [each.strip() for each in rest]) for first, *rest in pinned]


@pytest.mark.parametrize("listed", LISTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_pin_is_one_version_with_its_hashes(listed: Path) -> None:
    found = pins(listed)
    assert found
    for requirement, hashes in found:
        assert re.fullmatch(r"==[\w.]+", str(requirement.specifier)), requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), requirement


@pytest.mark.parametrize("wanted", [*TO_RUN, *TO_DEVELOP, Requirement("hatchling")], ids=str)
def test_the_requirements_of_the_project_are_pinned_within_their_ranges(wanted: Requirement) -> None:
    found = [pin for pin, _ in pins(PINNED) if canonicalize_name(pin.name) == canonicalize_name(wanted.name)]
    assert len(found) == 1, "make pins"
    assert wanted.specifier.contains(str(found[0].specifier).removeprefix("==")), "make pins"


def test_the_image_has_all_dependencies_of_emceepee_in_the_tested_versions() -> None:
    tested = {(canonicalize_name(pin.name), str(pin.specifier)) for pin, _ in pins(PINNED)}
    in_image = {(canonicalize_name(pin.name), str(pin.specifier)) for pin, _ in pins(IMAGE)}
    assert in_image <= tested, "make pins"
    assert {canonicalize_name(each.name) for each in TO_RUN} <= {name for name, _ in in_image}, "make pins"


@pytest.mark.parametrize(("name", "version"), HOLES)
def test_versions_with_known_vulnerabilities_are_excluded(name: str, version: str) -> None:
    wanted = next(each for each in [*TO_RUN, *TO_DEVELOP] if each.name == name)
    assert not wanted.specifier.contains(version), HOLES[name, version]


@pytest.mark.parametrize("wanted", TO_RUN, ids=str)
def test_every_runtime_dependency_has_an_upper_bound(wanted: Requirement) -> None:
    """A later release may change behavior that emceepee depends on, so users get only versions below a tested bound."""
    assert any(each.operator in ("<", "<=", "==", "~=") for each in wanted.specifier)
