from dataclasses import replace

import pytest

from emceepee.codemode.kept_script import KeptScript, PendingCall
from emceepee.codemode.values import Size
from emceepee.sessions.records import UnreadableRecord

KEPT = KeptScript(
    version="1.4.0",
    snapshot=b"\x00\xff",
    source="import asyncio\n1",
    pending=[
        PendingCall(number=1, function="execute_tool", arguments={"server": "a"}, key="b", call_id="c"),
        PendingCall(number=2, function="sleep", arguments={}, wakes_at="2026-01-01T00:00:00+00:00"),
        PendingCall(number=3, function="list_tools", arguments={}, answer={"return_value": [1]}),
    ],
    modules={"servers.a.b": ["a", "b", {"from_": "from"}, ["c"]]},
    log="words\n",
    log_dropped=3,
    calls=2,
    computed=0.5,
    began_at="2026-01-01T00:00:00+00:00",
)


def test_a_stored_script_survives_a_round_trip() -> None:
    assert KeptScript.from_bytes(KEPT.to_bytes()) == KEPT


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", KEPT.to_bytes().replace(b'"pending":[[1', b'"pending":[["x"')])
def test_a_damaged_stored_script_is_rejected(data: bytes) -> None:
    with pytest.raises((UnreadableRecord, KeyError, TypeError, ValueError)):
        KeptScript.from_bytes(data)


def test_the_weight_of_a_stored_script_includes_the_arguments_and_answers_of_its_calls() -> None:
    large = PendingCall(number=1, function="a", arguments={}, size=Size(1000, 1), answer_size=Size(2000, 1))
    assert replace(KEPT, pending=[large]).weight == len(KEPT.snapshot) + 3000
