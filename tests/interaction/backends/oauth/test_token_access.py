"""The cost of logins per call: nothing for a server without tokens, and a few frames with a stored token."""

import sys
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

import emceepee
from emceepee.backends.dialer import Dialer
from emceepee.backends.oauth.oauth_client import OAuthClient
from emceepee.backends.oauth.tokens import TokenSet
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.clock import Clock
from emceepee.sessions.logins.authorizer import SessionAuthorizer
from emceepee.sessions.logins.server_logins import FixedCallback, ServerLogins
from emceepee.sessions.logins.token_repository import TokenRepository
from emceepee.sessions.secret_records import SecretRecords, ServerKey
from emceepee.store.memory_store import MemoryStore
from support.backends.http_backend import http_backend
from support.backends.scripted_listener import ScriptedListener
from support.figures import record_figure

ROOT = Path(emceepee.__file__).parent
LOGIN_CODE = (str(ROOT / "backends" / "oauth"), str(ROOT / "sessions" / "logins"))
CALL = {"name": "echo", "arguments": {"text": "x"}}


def a_token(target: HttpTarget, clock: Clock) -> TokenSet:
    now = clock.now()
    return TokenSet(
        issuer="https://as.test",
        resource=target.url,
        client=OAuthClient(client_id="me"),
        token_endpoint="https://as.test/token",
        access_token="one",
        issued_at=now,
        expires_at=now + timedelta(hours=1),
        refresh_token="r",
    )


@pytest.mark.parametrize(("has_token", "most"), [(False, 0), (True, 1)])
async def test_a_call_without_a_token_runs_no_login_code(
    dialer: Dialer, clock: Clock, *, has_token: bool, most: int
) -> None:
    frames: list[str] = []

    def count(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(LOGIN_CODE):
            frames.append(frame.f_code.co_qualname)

    async with http_backend() as backend:
        target, store = HttpTarget(url=backend.url, kind="http"), MemoryStore()
        key = ServerKey("", "one", target.url)
        if has_token:
            await TokenRepository(SecretRecords(store, clock), clock).save(key, a_token(target, clock))
        logins = ServerLogins(store, dialer, clock, FixedCallback())
        nobody = cast(Any, None)
        authorizer = SessionAuthorizer(
            logins, key, target, nobody, nobody, on_end=lambda _: None, on_trouble=lambda: None
        )
        spec = BackendSpec(name="one", target=target, mode="legacy")
        link = await dialer.dial(spec, ScriptedListener(), authorizer=authorizer)
        try:
            await link.request("tools/call", CALL)  # the first call computes when to refresh the token
            sys.setprofile(count)
            try:
                await link.request("tools/call", CALL)
            finally:
                sys.setprofile(None)
        finally:
            await link.close()
            await logins.close()
    assert len(frames) <= most, frames
    record_figure(f"frames of login code per call {'with' if has_token else 'without'} a token: {len(frames)}")
