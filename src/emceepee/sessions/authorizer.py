"""What one session's connection to one server asks of the logins, and how its caller is asked for one."""

import asyncio
from collections.abc import Callable

from emceepee.backends.link import NoAccess
from emceepee.backends.oauth.challenge import Demand
from emceepee.backends.oauth.flow import AskPerson
from emceepee.backends.oauth.renewal import Renewal
from emceepee.backends.oauth.tokens import TokenSet
from emceepee.backends.spec import HttpTarget
from emceepee.errors import InvalidArguments, LoginNeeded
from emceepee.sessions.call import Call
from emceepee.sessions.calls import Calls
from emceepee.sessions.questions import QuestionClosed, Questions, TooManyQuestions
from emceepee.sessions.running_login import RunningLogin
from emceepee.sessions.secret_records import ServerKey
from emceepee.sessions.server_logins import ServerLogins
from emceepee.state.question import Gone, QuestionKind
from emceepee.surface import call_to
from emceepee.telemetry.spans import PhaseKind, phase

OR_A_TOKEN = (
    'Put a token for it into headers, as {"Authorization": "Bearer …"}: best in the configuration file, where '
    "${NAME} takes it from the environment, so that it does not pass through a model"
)


class SessionAuthorizer:
    """`Authorizer` to the connection, `Onlooker` to the login."""

    def __init__(
        self, logins: ServerLogins, key: ServerKey, target: HttpTarget, questions: Questions, calls: Calls
    ) -> None:
        self._logins, self._key, self._target = logins, key, target
        self._questions, self._calls = questions, calls
        self.on_end: Callable[[str | None], None] = lambda _: None

    @property
    def tokens(self) -> TokenSet | None:
        return self._logins.known(self._key)

    @property
    def is_logging_in(self) -> bool:
        return self._running is not None

    @property
    def authorization_url(self) -> str | None:
        login = self._running
        return login.asked.url if login is not None and login.asked is not None else None

    @property
    def _running(self) -> RunningLogin | None:
        return self._logins.running(self._key)

    # What the connection asks.

    async def load(self) -> None:
        await self._logins.load(self._key)

    def renew_soon(self, stale: TokenSet) -> None:
        self._logins.renew_soon(self._key, self._target, stale)

    async def renew(self, stale: TokenSet) -> Renewal:
        return await self._logins.renew(self._key, self._target, stale)

    async def log_in(self, demand: Demand, stale: TokenSet | None) -> None:
        """Raises: NoAccess."""
        login = self._logins.begin(self._key, self._target, demand, stale)
        login.join(self)
        await login.turn.wait()
        if not login.is_over:
            raise NoAccess("someone has to log in to it", wants_person=True)
        if (reason := login.outcome.result()) is not None:
            raise NoAccess(f"it wants a login, and that failed: {reason}. {OR_A_TOKEN}")

    async def wait(self, origin: object | None) -> None:
        """Raises: LoginNeeded."""
        login = self._running
        if login is None:
            return  # it is over, and the next try shows how
        login.join(self)
        await login.turn.wait()
        if isinstance(origin, Call) and not login.is_over:
            self._calls.promote_for_question(self._key.server, origin)
        with phase(PhaseKind.WAITING, self._key.server):
            reason = await asyncio.shield(login.outcome)
        if reason is not None:
            raise self._not_logged_in(reason)

    # What the caller does.

    async def finish(self, url: str) -> None:
        """Take the address that a browser ended at. Returns when the login is over. Raises: EmceepeeError."""
        login = self._running
        if login is None:
            raise InvalidArguments(
                f'No login to "{self._key.server}" waits for an address. {call_to("list_servers")} shows which do; '
                f"{call_to('reconnect_server')} begins one, if the server wants it."
            )
        if (problem := login.receive(url)) is not None:
            raise InvalidArguments(f"{problem}.")
        if (reason := await asyncio.shield(login.outcome)) is not None:
            raise self._not_logged_in(reason)

    def leave(self) -> None:
        """Nobody here wants the login any more."""
        if (login := self._running) is not None:
            login.leave(self)

    def give_up(self) -> None:
        """The server is not here any more. The login ends, unless another session wants it."""
        if (login := self._running) is not None:
            login.leave(self)
            if not login.is_wanted:
                login.abandon("The server was removed")

    def _not_logged_in(self, reason: str) -> LoginNeeded:
        server = self._key.server
        return LoginNeeded(
            f'Server "{server}" was not logged in to, so nothing ran there: {reason}.', details={"server": server}
        )

    # What the login asks.

    async def put_question(self, asked: AskPerson, *, seconds: float) -> bool:
        server = self._key.server
        words = f"{server} wants you to log in. Open the address in a browser and agree there."
        if asked.user_code is not None:
            words += f" Enter the code {asked.user_code} if you are asked for one."
        else:
            finish = call_to("finish_authorization")
            words += f" If the browser ends at a page that cannot be shown, give its address to {finish}."
        params = {"mode": "url", "message": words, "url": asked.url, "elicitationId": f"login-{server}"}
        try:
            question = self._questions.ask(server, QuestionKind.ELICITATION, params, call_id=None, seconds=seconds)
        except TooManyQuestions:
            return True  # list_servers has the address
        try:
            answer = await self._questions.wait_for_answer(question)
        except QuestionClosed as gone:
            return gone.why is not Gone.CANCELLED
        return answer.get("action") == "accept"

    def on_login_ended(self, reason: str | None) -> None:
        self.on_end(reason)
