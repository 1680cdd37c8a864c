from importlib import import_module

import pytest

from emceepee.config.former_limits import FORMER_LIMITS
from emceepee.state.limits import Limits

CONSTANTS = {
    "health_answer_seconds": "backends.health_check.HEALTH_ANSWER_SECONDS",
    "list_pages": "backends.catalog.LIST_PAGES",
    "list_entries": "backends.catalog.LIST_ENTRIES",
    "list_bytes": "backends.catalog.LIST_BYTES",
    "subscriptions_per_server": "backends.links.subscriptions.SUBSCRIPTIONS_PER_SERVER",
    "event_bytes_per_session": "sessions.events.activity.EVENT_BYTES_PER_SESSION",
    "event_bytes_in_all": "app.session_parts.EVENT_BYTES_IN_ALL",
    "event_notice_bytes": "tools.replies.notices.EVENT_NOTICE_BYTES",
    "activity_bytes": "tools.activity_tools.ACTIVITY_BYTES",
    "result_part_bytes": "tools.result_tools.RESULT_PART_BYTES",
    "question_bytes_per_session": "sessions.questions.questions.QUESTION_BYTES_PER_SESSION",
    "question_rounds": "backends.input_rounds.QUESTION_ROUNDS",
    "servers_per_principal": "sessions.servers.registry.SERVERS_PER_PRINCIPAL",
    "waiting_per_session": "sessions.events.activity.WAITING_PER_SESSION",
    "unsaved_records": "sessions.directory.session_storage.UNSAVED_RECORDS",
    "replay_bytes": "server.http.replay.message_log.REPLAY_BYTES",
    "calls_per_script": "codemode.script_workers.CALLS_PER_SCRIPT",
    "script_code_bytes": "codemode.engine.SCRIPT_CODE_BYTES",
    "scripts_per_session": "codemode.engine.SCRIPTS_PER_SESSION",
    "scripts_per_principal": "codemode.engine.SCRIPTS_PER_PRINCIPAL",
    "scripts_in_all": "codemode.engine.SCRIPTS_IN_ALL",
    "parked_bytes_per_principal": "codemode.script.PARKED_BYTES_PER_PRINCIPAL",
    "parked_bytes_in_all": "codemode.script.PARKED_BYTES_IN_ALL",
}


def test_every_former_limit_has_a_constant() -> None:
    assert CONSTANTS.keys() == FORMER_LIMITS.keys()


@pytest.mark.parametrize("name", FORMER_LIMITS)
def test_the_value_in_a_former_limit_warning_is_that_of_the_constant(name: str) -> None:
    module, _, constant = CONSTANTS[name].rpartition(".")
    assert getattr(import_module(f"emceepee.{module}"), constant) == FORMER_LIMITS[name].value


def test_a_former_limit_is_no_longer_a_limit() -> None:
    assert not [name for name in FORMER_LIMITS if hasattr(Limits(), name)]


def test_a_former_limit_is_described_with_its_unit() -> None:
    described = [FORMER_LIMITS[name].describe(name) for name in ("list_pages", "list_bytes", "health_answer_seconds")]
    assert described == ["1,000", "16,777,216 bytes", "10 seconds"]
