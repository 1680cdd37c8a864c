"""A hop signature is valid once, for one replica, for a limited time, and protects every signed part."""

from dataclasses import replace

import pytest

from emceepee.guard.caller_identity import LOCAL, CallerIdentity
from emceepee.replicas.delivery_reports import NOTHING_TO_REPORT, DeliveryReport
from emceepee.replicas.signature import (
    NUMBERS_KEPT,
    WINDOW_SECONDS,
    Hop,
    SignedMessage,
    Signer,
    SigningReplica,
    Verifier,
)
from emceepee.state.replica import Replica

KEY = b"k" * 32
NOW = 1_800_000_000
MESSAGE = SignedMessage(b"POST", b"/mcp?session=1", b"host: here\r\nmcp-session-id: S-02\r\n", b'{"id":1}')
HOLDER = Replica(slot=2, epoch=9, address="unix:/there")
SENDER = Replica(slot=1, epoch=7, address="unix:/here")
NEWS = DeliveryReport(written=(4,), read=(3, 5))
ADA = CallerIdentity("ada@läden \n:,", is_proven=True, is_remote=True)


def sign(signer: Signer, message: SignedMessage = MESSAGE, *, at: int = NOW, number: int | None = None) -> bytes:
    number = signer.next_number() if number is None else number
    return signer.sign(message, number=number, target=HOLDER, sender=SENDER, at=at, identity=ADA, news=NEWS)


def verify(value: bytes, message: SignedMessage = MESSAGE, *, own: Replica = HOLDER, now: float = NOW) -> Hop | None:
    return Verifier(KEY).verify(value, message, own=own, now=now)


def test_a_hop_signature_contains_the_caller_and_the_signing_replica() -> None:
    assert verify(sign(Signer(KEY, "a"))) == Hop(ADA, SigningReplica(1, 7), b"a", 1, NEWS)


@pytest.mark.parametrize("principal", [LOCAL, "", "\udc80", "ö" * 500])
@pytest.mark.parametrize("flag", ["is_proven", "is_remote", "is_page", "principal"])
def test_every_caller_identity_survives_a_hop(principal: str, flag: str) -> None:
    identity = CallerIdentity(principal) if flag == "principal" else CallerIdentity(principal, **{flag: True})
    value = Signer(KEY).sign(MESSAGE, number=1, target=HOLDER, sender=SENDER, at=NOW, identity=identity)
    hop = verify(value)
    assert hop is not None
    assert (hop.identity, hop.news) == (identity, NOTHING_TO_REPORT)


@pytest.mark.parametrize(
    "changed",
    [
        replace(MESSAGE, method=b"GET"),
        replace(MESSAGE, target=b"/mcp?session=2"),
        replace(MESSAGE, headers=b"host: here\r\nmcp-session-id: S-03\r\n"),
        replace(MESSAGE, headers=MESSAGE.headers + b"x: 1\r\n"),
        replace(MESSAGE, body=b'{"id":2}'),
        replace(MESSAGE, headers=MESSAGE.headers[:-2], body=b"\r\n" + MESSAGE.body),
    ],
    ids=["method", "target", "header", "one more header", "body", "border"],
)
def test_a_hop_signature_fails_for_any_changed_part_of_the_request(changed: SignedMessage) -> None:
    assert verify(sign(Signer(KEY)), changed) is None


def test_a_hop_signature_fails_for_any_changed_part_of_its_header() -> None:
    value = sign(Signer(KEY))
    for position in range(len(value)):
        changed = bytearray(value)
        changed[position] ^= 1
        assert verify(bytes(changed)) is None, f"with another byte {position}"
    fields = value.split(b" ")
    for number in range(len(fields)):
        assert verify(b" ".join(fields[:number] + fields[number + 1 :])) is None, f"without field {number}"


@pytest.mark.parametrize("value", [b"", b" ", b"1", b"\xff" * 10, b"1 2.9 1.7 0 a.1 0: - " + b"0" * 64])
def test_a_malformed_hop_signature_is_rejected(value: bytes) -> None:
    assert verify(value) is None


def test_a_hop_signature_is_valid_for_one_replica_only() -> None:
    value = sign(Signer(KEY))
    assert verify(value, own=replace(HOLDER, slot=3)) is None
    assert verify(value, own=replace(HOLDER, epoch=10)) is None
    assert verify(value, own=replace(HOLDER, address="elsewhere")) is not None


def test_a_hop_signature_with_another_key_is_rejected() -> None:
    assert verify(sign(Signer(b"x" * 32))) is None


@pytest.mark.parametrize(("off", "is_good"), [(0, True), (119, True), (-119, True), (121, False), (-121, False)])
def test_a_hop_signature_is_valid_for_two_minutes(off: int, is_good: bool) -> None:
    assert (verify(sign(Signer(KEY)), now=NOW + off) is not None) == is_good


def test_a_hop_signature_is_valid_once() -> None:
    verifier, value = Verifier(KEY), sign(Signer(KEY))
    assert verifier.verify(value, MESSAGE, own=HOLDER, now=NOW) is not None
    assert verifier.verify(value, MESSAGE, own=HOLDER, now=NOW) is None
    assert verifier.verify(value, MESSAGE, own=HOLDER, now=NOW + WINDOW_SECONDS) is None


def test_hop_signatures_may_arrive_out_of_order_and_none_is_valid_twice() -> None:
    verifier, signer = Verifier(KEY), Signer(KEY)
    values = [sign(signer) for _ in range(100)]
    order = values[50:] + values[:50]
    assert all(verifier.verify(value, MESSAGE, own=HOLDER, now=NOW) for value in order)
    assert not any(verifier.verify(value, MESSAGE, own=HOLDER, now=NOW) for value in order)


def test_the_memory_per_signer_is_limited_and_forgotten_numbers_are_rejected() -> None:
    verifier, signer = Verifier(KEY), Signer(KEY)
    first = sign(signer, number=1)
    late = sign(signer, number=2)
    assert verifier.verify(first, MESSAGE, own=HOLDER, now=NOW) is not None
    for number in range(3, 2 * NUMBERS_KEPT):
        assert verifier.verify(sign(signer, number=number), MESSAGE, own=HOLDER, now=NOW) is not None
    [numbers] = verifier._seen.values()
    assert len(numbers._taken) <= NUMBERS_KEPT
    assert verifier.verify(first, MESSAGE, own=HOLDER, now=NOW) is None
    assert verifier.verify(late, MESSAGE, own=HOLDER, now=NOW) is None


def test_silent_signers_are_forgotten_when_another_one_signs() -> None:
    verifier = Verifier(KEY)
    old = sign(Signer(KEY, "old"))
    assert verifier.verify(old, MESSAGE, own=HOLDER, now=NOW) is not None
    later = NOW + 10 * WINDOW_SECONDS
    assert verifier.verify(sign(Signer(KEY, "new"), at=later), MESSAGE, own=HOLDER, now=later) is not None
    assert list(verifier._seen) == [b"new"]
    assert verifier.verify(old, MESSAGE, own=HOLDER, now=later) is None


HEAD = b"200\r\ncontent-type: application/json\r\n"


def test_a_response_proof_covers_its_content_and_its_request() -> None:
    hop = Hop(ADA, SigningReplica(1, 7), b"a", 4, NOTHING_TO_REPORT)
    proof = Signer(KEY, "a").proof(4)
    written = Verifier(KEY).proof(hop).of_content(b"whole", HEAD, b"{}")
    assert proof.of_content(b"whole", HEAD, b"{}") == written
    changed = [
        proof.of_content(b"whole check", HEAD, b"{}"),
        proof.of_content(b"framed", HEAD, b"{}"),
        proof.of_content(b"whole", HEAD.replace(b"200", b"421"), b"{}"),
        proof.of_content(b"whole", HEAD + b"set-cookie: a\r\n", b"{}"),
        proof.of_content(b"whole", HEAD, b"[]"),
        proof.of_content(b"whole", HEAD + b"{}"),
        *(other.of_content(b"whole", HEAD, b"{}") for other in (Signer(KEY, "a").proof(5), Signer(KEY, "b").proof(4))),
        Signer(b"x" * 32, "a").proof(4).of_content(b"whole", HEAD, b"{}"),
    ]
    assert written not in changed
    assert len(set(changed)) == len(changed)


def test_each_response_has_its_own_frame_key() -> None:
    keys = [Signer(KEY, name).proof(number).frame_key() for name in ("a", "b") for number in (1, 2)]
    assert len(set(keys)) == len(keys)
    assert Verifier(KEY).proof(Hop(ADA, SigningReplica(1, 7), b"a", 2, NOTHING_TO_REPORT)).frame_key() == keys[1]
