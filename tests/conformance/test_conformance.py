"""The official conformance suite, run against emceepee as a server and with emceepee as the client."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.callers.conformance_suite import ENTRY, VERSIONS, checks, run_suite
from support.callers.http_process import HttpProcess, http_process
from support.matrix import matrix

pytestmark = pytest.mark.asyncio(loop_scope="module")

HERE = Path(__file__).parent
DRIVER = f"{sys.executable} -m support.programs.conformance_client"
PERSON = f"{sys.executable} -m support.programs.conformance_login"
AS_CLIENT = {
    "2025-11-25": [
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "json-schema-2020-12-preservation",
    ],
    "2026-07-28": [
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ],
}
LOGINS_OF_BOTH = [
    *("metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd", "pre-registration"),
    *("scope-from-www-authenticate", "scope-from-scopes-supported", "scope-omitted-when-undefined"),
    *("scope-step-up", "scope-retry-limit"),
    *("token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none"),
]
LOGINS = {
    "2025-11-25": LOGINS_OF_BOTH,
    "2026-07-28": [
        *LOGINS_OF_BOTH,
        *("resource-mismatch", "offline-access-scope", "offline-access-not-supported"),
        *("authorization-server-migration", "iss-supported", "iss-not-advertised", "iss-supported-missing"),
        *("iss-wrong-issuer", "iss-unexpected", "iss-normalized", "metadata-issuer-mismatch"),
    ],
    "extensions, and before": [
        *("client-credentials-jwt", "client-credentials-basic", "enterprise-managed-authorization"),
        *("dpop", "dpop-nonce", "wif-jwt-bearer"),
        *("2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback"),
    ],
}
LOGIN_SCENARIOS = [(version, scenario) for version in LOGINS for scenario in LOGINS[version]]
QUICK_OF_BOTH = ("basic-cimd", "scope-step-up")  # the newer version runs all of them
QUICK_LOGINS = [
    (version, scenario) for version, scenario in LOGIN_SCENARIOS if version != "2025-11-25" or scenario in QUICK_OF_BOTH
]
# What the suite's mock server does not let a client of this version do; it says so itself, and fails nothing.
SKIPPED = {"ClientMcpMethodHeader_initialize", "ClientMcpMethodHeader_notifications_initialized"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[HttpProcess]:
    async with http_process("--log-level", "warn", "--root", str(HERE)) as running:
        yield running


@pytest.mark.parametrize("version", VERSIONS)
async def test_emceepee_as_a_server_passes_every_applicable_conformance_scenario(version: str, tmp_path: Path) -> None:
    """Every scenario runs. The file lists inapplicable ones with their reasons; a warning is a failure."""
    expected = HERE / f"server-{version}.yml"
    options = ["--suite", "all", "--spec-version", version, "--expected-failures", str(expected), "-o", str(tmp_path)]
    async with http_process("--log-level", "warn", module=ENTRY) as endpoint:
        code, output = await run_suite("server", "--url", endpoint.url, *options)
    assert code == 0, output
    passed = [check for check in checks(tmp_path) if check["status"] == "SUCCESS"]
    assert len(passed) >= {"2025-11-25": 45, "2026-07-28": 108}[version], output


@pytest.mark.parametrize(
    ("version", "scenario"), [(version, scenario) for version in VERSIONS for scenario in AS_CLIENT[version]]
)
async def test_emceepee_as_a_client_passes_the_conformance_suite(
    endpoint: HttpProcess, version: str, scenario: str, tmp_path: Path
) -> None:
    options = ["--command", DRIVER, "--scenario", scenario, "--spec-version", version, "--timeout", "60000"]
    code, output = await run_suite("client", *options, "-o", str(tmp_path), env={"EMCEEPEE_URL": endpoint.url})
    assert code == 0, output
    found = checks(tmp_path)
    unexpected = [
        check for check in found if check["status"] not in ("SUCCESS", "INFO") and check["name"] not in SKIPPED
    ]
    assert unexpected == [], output
    assert [check for check in found if check["status"] == "SUCCESS"], output


@pytest.mark.parametrize(("version", "scenario"), matrix(LOGIN_SCENARIOS, representatives=QUICK_LOGINS))
async def test_emceepee_as_a_client_passes_the_conformance_scenarios_for_logins(
    endpoint: HttpProcess, version: str, scenario: str, tmp_path: Path
) -> None:
    options = ["--command", PERSON, "--scenario", f"auth/{scenario}", "--timeout", "60000"]
    if version in VERSIONS:
        options += ["--spec-version", version]
    code, output = await run_suite("client", *options, "-o", str(tmp_path), env={"EMCEEPEE_URL": endpoint.url})
    assert code == 0, output
    found = checks(tmp_path)
    assert [check for check in found if check["status"] not in ("SUCCESS", "INFO")] == [], output
    assert [check for check in found if check["status"] == "SUCCESS"], output


async def test_every_conformance_scenario_is_run() -> None:
    """A newer suite brings new scenarios that must be reviewed."""
    for version in VERSIONS:
        named = await _scenarios("--spec-version", version)
        assert named == set(AS_CLIENT[version]) | {f"auth/{name}" for name in LOGINS[version]}
    logins = {name for name in await _scenarios() if name.startswith("auth/")}
    assert logins == {f"auth/{name}" for names in LOGINS.values() for name in names}


async def _scenarios(*options: str) -> set[str]:
    _, output = await run_suite("list", "--client", *options)
    return {line.split()[1] for line in output.splitlines() if line.strip().startswith("-")}
