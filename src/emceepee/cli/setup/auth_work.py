"""The implementation of `emceepee auth`."""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import uvloop

from emceepee.app.session_parts import open_store, server_logins
from emceepee.backends.dialer import Dialer
from emceepee.backends.link import LinkError, NoAccess, RpcError
from emceepee.backends.oauth.metadata.well_known import is_openable
from emceepee.backends.oauth.oauth_settings import Grant, OAuthSettings
from emceepee.backends.spec import BackendSpec, HttpTarget, UnusableTarget
from emceepee.cli.setup.auth_outcome import FAILED, AuthError, AuthOutcome
from emceepee.cli.setup.terminal_login import NoListener, TerminalLogin, has_browser
from emceepee.cli.terminal import agrees
from emceepee.clock import Clock, SystemClock, iso
from emceepee.config.settings import Config
from emceepee.errors import near_names
from emceepee.guard.caller_identity import LOCAL
from emceepee.sessions.logins.login_overview import LoginState, LoginView
from emceepee.sessions.logins.server_logins import ServerLogins
from emceepee.sessions.secret_records import ServerKey
from emceepee.sessions.servers.stored_configuration import read_specs
from emceepee.store.store import StoreError
from emceepee.telemetry import logs

MOST_LOGINS = 3  # in a row; a server that demands another login after that is reported as an error
CALLED_OFF = "The login was cancelled"
WORDS = {
    LoginState.LOGGED_IN: "logged in",
    LoginState.EXPIRED: "expired: log in again",
    LoginState.AUTHORIZING: "someone was asked to log in",
    LoginState.LOGGED_OUT: "not logged in",
    LoginState.NO_LOGIN: "no login: a program, or uses a credential",
    LoginState.UNUSABLE: "disabled because its configuration is invalid",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthContext:
    """The context of a command: options, servers, and services."""

    options: argparse.Namespace
    environment: Mapping[str, str]
    specs: Mapping[str, BackendSpec]
    dialer: Dialer
    logins: ServerLogins
    clock: Clock

    @property
    def principal(self) -> str:
        return str(self.options.principal)

    async def views(self) -> Sequence[LoginView]:
        return await self.logins.overview(self.principal, self.specs.values())

    async def view(self) -> LoginView:
        """Raises: AuthError."""
        views, name = await self.views(), self.options.server
        known = [each for each in views if each.server == name and each.state is not LoginState.UNUSABLE]
        if not known and (spec := self.specs.get(name)) is not None and isinstance(spec.target, UnusableTarget):
            raise AuthError(f"{name} is disabled because its configuration is invalid: {spec.target.reason}")
        if not known:
            near = near_names(name, {each.server for each in views} | self.specs.keys())
            meant = f"Did you mean {' or '.join(near)}?" if near else "emceepee auth list shows all servers."
            whose = "" if self.principal == LOCAL else f" for {self.principal}"
            raise AuthError(f'there is no server called "{name}"{whose}. {meant}')
        return known[0]


def run_work(config: Config, options: argparse.Namespace, environment: Mapping[str, str]) -> AuthOutcome:
    """Raises: AuthError, KeyboardInterrupt."""
    logs.configure(level="error")
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_run(config, options, environment))
    except StoreError as error:
        raise AuthError(str(error), code=FAILED) from None


async def _run(config: Config, options: argparse.Namespace, environment: Mapping[str, str]) -> AuthOutcome:
    async with _opened(config, options, environment) as context:
        return await _WORKS[options.work](context)


@asynccontextmanager
async def _opened(
    config: Config, options: argparse.Namespace, environment: Mapping[str, str]
) -> AsyncIterator[AuthContext]:
    clock = SystemClock()
    async with (
        open_store(config, clock) as store,
        Dialer.running(clock, config.limits, roots=config.roots, egress=config.egress) as dialer,
        server_logins(config, clock, store, dialer, chosen_address=getattr(options, "callback", None)) as logins,
    ):
        added = read_specs(await store.servers_of(options.principal))
        specs = added | {spec.name: spec for spec in config.servers}
        yield AuthContext(
            options=options, environment=environment, specs=specs, dialer=dialer, logins=logins, clock=clock
        )


async def _list(context: AuthContext) -> AuthOutcome:
    views = await context.views()
    facts = {"principal": context.principal, "servers": [_facts(view) for view in views]}
    if not views:
        return AuthOutcome(
            facts=facts, text="There are no servers: specify a configuration with --config, or add servers.\n"
        )
    rows = [("SERVER", "LOGIN", "ISSUER", "EXPIRES", "SCOPES")]
    rows += [
        (each.server, _words(each), each.issuer or "-", _expiry(each), " ".join(each.scopes) or "-") for each in views
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return AuthOutcome(facts=facts, text="".join(f"{line}\n" for line in lines))


async def _status(context: AuthContext) -> AuthOutcome:
    return _shown(await context.view())


async def _logout(context: AuthContext) -> AuthOutcome:
    view = await context.view()
    if view.state is LoginState.NO_LOGIN:
        raise AuthError(f"emceepee does not log in to {view.server}: it is a program, or has a credential configured")
    await _confirm(context, view)
    if view.is_known:
        target = context.specs[view.server].target
        assert isinstance(target, HttpTarget)  # other servers have no login
        done = await context.logins.log_out_now(context.principal, view.server, target)
    else:
        assert view.record is not None  # tokens exist for a server that is no longer configured
        is_public = context.principal != LOCAL
        done = await context.logins.log_out_forgotten(context.principal, view.record, is_public=is_public)
    facts = {"server": view.server, "wasLoggedIn": done.had_tokens, "revoked": done.is_revoked}
    if not done.had_tokens:
        return AuthOutcome(facts=facts, text=f"Nobody was logged in to {view.server}.\n")
    not_revoked = "not revoked there: the authorization server does not support revocation, or it failed"
    revocation = "revoked there" if done.is_revoked else not_revoked
    text = f"Logged out of {view.server}. The local tokens are deleted, and {revocation}.\n"
    return AuthOutcome(facts=facts, text=text)


async def _confirm(context: AuthContext, view: LoginView) -> None:
    """Raises: AuthError."""
    if context.options.yes or view.record is None:
        return
    if not sys.stdin.isatty() or context.options.json:
        raise AuthError("logout needs confirmation: pass --yes")
    if not await asyncio.to_thread(agrees, f"Delete the login to {view.server} at {view.issuer}?"):
        raise AuthError("nothing was changed", code=FAILED)


async def _login(context: AuthContext) -> AuthOutcome:
    view = await context.view()
    spec = context.specs.get(view.server)
    if spec is not None and isinstance(spec.target, UnusableTarget):
        raise AuthError(f"{spec.name} is disabled because its configuration is invalid: {spec.target.reason}")
    if spec is None:
        raise AuthError(f'"{view.server}" is no server any more: add it to the configuration, or log out of it')
    target = spec.target
    if not isinstance(target, HttpTarget) or not target.may_log_in:
        raise AuthError(f"emceepee does not log in to {spec.name}: it is a program, or has a credential configured")
    if (chosen := context.options.callback) is not None and not is_openable(chosen, "http://localhost"):
        raise AuthError(
            "--callback must begin with https:// or be on this machine, because browsers send authorization codes there"
        )
    if context.options.device:
        target = replace(target, oauth=replace(target.oauth or OAuthSettings(), grant=Grant.DEVICE_CODE))
    wants_browser = context.options.browser
    terminal = TerminalLogin(
        context.logins,
        ServerKey(context.principal, spec.name, target.url),
        target,
        opens_browser=has_browser(context.environment, sys.platform) if wants_browser is None else wants_browser,
        says_json=context.options.json,
    )
    try:
        await _until_let_in(context, replace(spec, target=target), terminal)
    except asyncio.CancelledError:  # Ctrl-C
        if terminal.login is not None:
            await context.logins.give_up(terminal.login.key, CALLED_OFF)
        raise
    view = await context.view()
    if view.record is None and terminal.login is not None:
        raise AuthError(
            f"logged in to {spec.name}, but the tokens could not be stored; is the state writable?", code=FAILED
        )
    if view.record is None:
        facts = _facts(view) | {"state": "not_needed"}
        return AuthOutcome(facts=facts, text=f"{view.server} accepts emceepee without a login.\n")
    if terminal.login is None:
        return replace(_shown(view), text=f"Already logged in to {view.server}, which accepts emceepee.\n")
    return replace(_shown(view), text=f"Logged in to {view.server} at {view.issuer}.\n")


async def _until_let_in(context: AuthContext, spec: BackendSpec, terminal: TerminalLogin) -> None:
    """Raises: AuthError."""
    for _ in range(MOST_LOGINS):
        try:
            link = await context.dialer.dial(spec, NoListener(), principal=context.principal, authorizer=terminal)
        except NoAccess as error:
            if not error.wants_person:
                raise AuthError(f"not logged in to {spec.name}: {error}", code=FAILED) from None
        except (LinkError, RpcError) as error:
            raise AuthError(f"{spec.name} cannot be connected to: {error}", code=FAILED) from None
        else:
            await link.close()
            return
        assert terminal.login is not None  # only a login raises `wants_person`
        reason = await asyncio.shield(terminal.login.outcome)
        if reason is not None:
            raise AuthError(f"not logged in to {spec.name}: {reason}", code=FAILED)
    raise AuthError(f"{spec.name} demands one login after another", code=FAILED)


_WORKS: Mapping[str, Callable[[AuthContext], Coroutine[Any, Any, AuthOutcome]]] = {
    "list": _list,
    "status": _status,
    "login": _login,
    "logout": _logout,
}


def _shown(view: LoginView) -> AuthOutcome:
    rows = {"Server": view.server, "Address": view.url, "Login": _words(view)}
    if view.record is not None:
        rows |= {"Issuer": view.issuer or "-", "Scopes": " ".join(view.scopes) or "-", "Expires": _expiry(view)}
    return AuthOutcome(facts=_facts(view), text="".join(f"{name + ':':<10}{text}\n" for name, text in rows.items()))


def _facts(view: LoginView) -> dict[str, Any]:
    return {
        "server": view.server,
        "url": view.url,
        "state": view.state.value,
        "issuer": view.issuer,
        "scopes": list(view.scopes),
        "expiresAt": None if view.expires_at is None else iso(view.expires_at),
        "renewable": view.is_renewable,
        "configured": view.is_known,
    }


def _words(view: LoginView) -> str:
    return WORDS[view.state] if view.is_known else f"{WORDS[view.state]}; the server is no longer configured"


def _expiry(view: LoginView) -> str:
    if view.record is None:
        return "-"
    if view.expires_at is None:
        return "never"
    return f"{view.expires_at:%Y-%m-%d %H:%M} UTC{', is renewed' if view.is_renewable else ''}"
