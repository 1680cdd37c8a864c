import pytest

from emceepee.backends import input_rounds
from emceepee.backends.input_rounds import InputRounds, wants_input
from emceepee.backends.link import RpcError, ServerLost
from emceepee.errors import BackendDisconnected, ExecutionFailed
from emceepee.state.limits import Limits
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_listener import ScriptedListener
from support.fakes.clock import FakeClock

FORM, SAMPLE = "elicitation/create", "sampling/createMessage"
FINAL: JsonObject = {"resultType": "complete", "content": []}
PARAMS: JsonObject = {"name": "dig", "arguments": {"n": 1}}


def asking(**methods: str) -> JsonObject:
    return {
        "resultType": "input_required",
        "inputRequests": {key: {"method": method, "params": {"of": key}} for key, method in methods.items()},
    }


class Sender:
    """Answers each request with the next of the given results."""

    def __init__(self, *results: JsonObject) -> None:
        self.results, self.sent = list(results), list[JsonObject]()

    async def __call__(self, params: JsonObject) -> JsonObject:
        self.sent.append(params)
        return self.results.pop(0)


def rounds(listener: ScriptedListener, **limits: float) -> InputRounds:
    return InputRounds("one", listener, FakeClock(), Limits(**limits))  # type: ignore[arg-type]  # numbers of both kinds


async def test_a_call_is_repeated_with_its_own_parameters_the_answers_and_the_newest_state() -> None:
    listener, origin = ScriptedListener(**{FORM: {"action": "accept"}}), object()
    send = Sender(asking(b=FORM) | {"requestState": "s2"}, FINAL)
    first = asking(a=FORM) | {"requestState": "s1"}
    assert await rounds(listener).finish(first, PARAMS, send, origin) is FINAL
    assert send.sent == [
        PARAMS | {"requestState": "s1", "inputResponses": {"a": {"action": "accept"}}},
        PARAMS | {"requestState": "s2", "inputResponses": {"b": {"action": "accept"}}},
    ]
    assert listener.questions == [(FORM, {"of": "a"}, origin), (FORM, {"of": "b"}, origin)]
    assert PARAMS == {"name": "dig", "arguments": {"n": 1}}


async def test_a_question_in_a_result_has_a_shorter_timeout_than_one_of_the_handshake_era() -> None:
    listener = ScriptedListener(**{FORM: {"action": "accept"}})
    await rounds(listener, modern_question_seconds=7).finish(asking(a=FORM), PARAMS, Sender(FINAL), None)
    assert listener.seconds == [7]


@pytest.mark.parametrize(
    ("refusal", "condition"),
    [(RpcError({"code": -1, "message": "no model here"}), ExecutionFailed), (ServerLost({}), BackendDisconnected)],
)
async def test_an_unanswered_question_fails_the_call_and_withdraws_the_other_questions(
    refusal: RpcError, condition: type[Exception]
) -> None:
    listener, send = ScriptedListener(**{SAMPLE: refusal}), Sender()
    with pytest.raises(condition):
        await rounds(listener).finish(asking(a=FORM, b=SAMPLE), PARAMS, send, None)
    assert (listener.withdrawn, send.sent) == ([FORM], [])


async def test_a_call_that_keeps_asking_fails_after_the_maximum_number_of_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(input_rounds, "QUESTION_ROUNDS", 3)
    listener, send = ScriptedListener(**{FORM: {}}), Sender(*(asking(a=FORM) for _ in range(3)))
    with pytest.raises(ExecutionFailed, match="after 3 rounds"):
        await rounds(listener).finish(asking(a=FORM), PARAMS, send, None)
    assert send.results == []


def test_only_a_result_of_type_input_required_asks_for_input() -> None:
    assert wants_input(asking())
    assert not any(map(wants_input, ({}, FINAL, {"inputRequests": {}})))
