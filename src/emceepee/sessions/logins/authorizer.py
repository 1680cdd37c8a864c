"""Connect one session's connection to one server with the logins, and ask the session's caller to log in."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from emceepee.backends.link import NoAccess
from emceepee.backends.oauth.flow import AskPerson
from emceepee.backends.oauth.metadata.challenge import Demand
from emceepee.backends.oauth.renewal import Renewal
from emceepee.backends.oauth.tokens import IssuerUnavailable, TokenSet
from emceepee.backends.spec import HttpTarget
from emceepee.clock import Clock, give_up_after
from emceepee.errors import InvalidArguments, LoginNeeded
from emceepee.sessions.asker import Asker
from emceepee.sessions.call import Call
from emceepee.sessions.calls import Calls
from emceepee.sessions.logins.running_login import RunningLogin
from emceepee.sessions.logins.server_logins import ServerLogins
from emceepee.sessions.questions.questions import QuestionClosed, Questions, TooManyQuestions
from emceepee.sessions.secret_records import ServerKey
from emceepee.state.question import Gone, Question, QuestionKind
from emceepee.surface import call_to
from emceepee.telemetry.spans import PhaseKind, phase

OR_A_TOKEN = (
    'Put a token for it into headers, as {"Authorization": "Bearer …"}: best in the configuration file, where '
    "${NAME} takes it from the environment, so that it does not pass through a model"
)
TURN_SECONDS = 20.0  # for authorization servers to answer before a person can be asked
SLOW_SECONDS = 1.0  # a longer wait for an authorization server is reported


class LoginTrouble:
    """The authorization server that a connection waits for or could not reach, shown in the connection's status.

    `on_change` is called when `words` changes, outside of any step of the connection.
    """

    def __init__(self, clock: Clock, on_change: Callable[[], None]) -> None:
        self._clock, self._on_change = clock, on_change
        self._words: str | None = None
        self._waiting: list[Callable[[], str]] = []

    @property
    def words(self) -> str | None:
        return self._waiting[0]() if self._waiting else self._words

    def note(self, words: str | None) -> None:
        """Record the problem of the last attempt, or None if it succeeded."""
        if words != self._words:
            self._words = words
            self._on_change()

    @contextmanager
    def while_waiting(self, words: Callable[[], str]) -> Iterator[None]:
        """Report a slow wait for an authorization server while the context is open."""
        alarm = self._clock.call_later(SLOW_SECONDS, lambda: self._begin(words))
        try:
            yield
        finally:
            alarm.cancel()
            if words in self._waiting:
                self._waiting.remove(words)
                self._on_change()

    def _begin(self, words: Callable[[], str]) -> None:
        self._waiting.append(words)
        self._on_change()


class SessionAuthorizer:
    """Implement `Authorizer` for the connection and `LoginWatcher` for the login.

    `on_end` receives the reason of a failed login, or None after a successful one. `on_trouble` is called when
    `trouble` changes.
    """

    def __init__(
        self,
        logins: ServerLogins,
        key: ServerKey,
        target: HttpTarget,
        questions: Questions,
        calls: Calls,
        *,
        on_end: Callable[[str | None], None],
        on_trouble: Callable[[], None],
    ) -> None:
        self._logins, self._key, self._target = logins, key, target
        self._questions, self._calls, self.slot = questions, calls, logins.slot(key)
        self._on_end, self._on_trouble = on_end, on_trouble
        self._waiting: tuple[Call, ...] = ()  # calls that wait for the login
        self._is_asked = False  # whether the person was asked to log in
        self._question: Question | None = None  # the open question, unless there was no room for it
        self._asked_by: Asker | None = None  # the caller that was asked natively
        self._reported: LoginTrouble | None = None  # created by the first slow or failed request
        self._not_renewed: TokenSet | None = None

    @property
    def is_logging_in(self) -> bool:
        return self._running is not None

    @property
    def login_prompt(self) -> AskPerson | None:
        """Return the question if it was asked here. Only sessions that wait for a login are notified of its end."""
        login = self._running if self._is_asked else None
        return login.asked if login is not None else None

    @property
    def _elicitation_id(self) -> str:
        return f"login-{self._key.server}"

    @property
    def trouble(self) -> str | None:
        """Return the current problem, or None. A renewal by another session clears it."""
        if self._reported is None or (self._not_renewed is not None and self.slot.current is not self._not_renewed):
            return None
        return self._reported.words

    @property
    def _trouble(self) -> LoginTrouble:
        if self._reported is None:
            self._reported = LoginTrouble(self._logins.clock, self._on_trouble)
        return self._reported

    @property
    def _running(self) -> RunningLogin | None:
        return self._logins.running(self._key)

    # Requests from the connection.

    async def load(self) -> None:
        await self._logins.load(self._key)

    def renew_soon(self, stale: TokenSet) -> None:
        self._logins.renew_soon(self._key, self._target, stale)

    async def renew(self, stale: TokenSet) -> Renewal:
        with self._trouble.while_waiting(lambda: f"waiting for {stale.issuer} to renew the login"):
            renewal = await self._logins.renew(self._key, self._target, stale)
        if isinstance(renewal, IssuerUnavailable):
            self._not_renewed = stale
            self._trouble.note(f"the login cannot be renewed: {stale.issuer} is not available ({renewal.reason})")
        else:
            self._not_renewed = None
            self._trouble.note(None)
        return renewal

    async def log_in(self, demand: Demand, stale: TokenSet | None) -> None:
        """Raises: NoAccess."""
        login = self._logins.begin(self._key, self._target, demand, stale)
        try:
            with self._trouble.while_waiting(lambda: f"waiting for {login.waits_for} to start the login"):
                async with give_up_after(self._logins.clock, TURN_SECONDS):
                    if login.is_ending and await asyncio.shield(login.outcome) is not None:
                        login = self._logins.begin(self._key, self._target, demand, stale)
                    login.join(self)
                    await login.turn.wait()
        except TimeoutError:
            raise NoAccess(
                f"it requires a login, but {login.waits_for} did not start one within {TURN_SECONDS:g} s"
            ) from None
        if not login.is_over:
            raise NoAccess("someone has to log in to it", wants_person=True)
        if (reason := login.outcome.result()) is not None:
            raise NoAccess(f"it requires a login, which failed: {reason}. {OR_A_TOKEN}")

    async def wait(self, origin: object | None, *, is_first: bool) -> None:
        """Raises: LoginNeeded."""
        login = self._running
        if login is None:
            return  # the login is over, and the next attempt shows its outcome
        login.join(self)
        await login.turn.wait()
        calls = (origin,) if isinstance(origin, Call) else ()
        self._waiting += calls
        try:
            if is_first:
                for call in calls:
                    await self._calls.store_before_send(call)
            if self._is_asked and not login.is_over:
                self._ask_callers_of(calls)
            with phase(PhaseKind.WAITING, self._key.server):
                reason = await asyncio.shield(login.outcome)
        finally:
            self._waiting = tuple(call for call in self._waiting if call not in calls)
        if reason is not None:
            raise self._not_logged_in(reason)

    # Actions of the caller.

    async def finish(self, url: str) -> None:
        """Accept the redirect address that a browser reached. Return when the login is over. Raises: EmceepeeError."""
        login = self._running
        if login is None:
            raise InvalidArguments(
                f'No login to "{self._key.server}" waits for an address. {call_to("list_servers")} shows pending '
                f"logins; {call_to('reconnect_server')} begins one if the server requires it."
            )
        if (problem := login.receive(url)) is not None:
            raise InvalidArguments(f"{problem}.")
        if (reason := await asyncio.shield(login.outcome)) is not None:
            raise self._not_logged_in(reason)

    def leave(self) -> None:
        """Leave the login, because this session no longer needs it."""
        self._forget_question()
        if (login := self._running) is not None:
            login.leave(self)

    def give_up(self) -> None:
        """Leave the login of a removed server. End the login unless another session needs it."""
        self._forget_question()
        if (login := self._running) is not None:
            login.leave(self)
            if not login.has_watchers:
                login.abandon("The server was removed")

    def _not_logged_in(self, reason: str) -> LoginNeeded:
        server = self._key.server
        return LoginNeeded(
            f'Server "{server}" was not logged in to, so nothing ran there: {reason}.', details={"server": server}
        )

    # Requests from the login.

    async def put_question(self, asked: AskPerson, *, seconds: float) -> bool:
        server = self._key.server
        words = f"{server} asks you to log in at {asked.host}. Open the address in a browser and agree there."
        if asked.host != asked.issuer_host:
            words += (
                f" The login is then given to the authorization server {asked.issuer_host}: continue only if it may act"
                f" for you at {asked.host}."
            )
        if asked.user_code is not None:
            words += f" Enter the code {asked.user_code} if you are asked for one."
        else:
            finish = call_to("finish_authorization")
            if self._logins.callback.advice:
                words += f" {self._logins.callback.advice}"
            words += f" If the browser ends at a page that cannot be shown, give its address to {finish}."
        params = {"mode": "url", "message": words, "url": asked.opens, "elicitationId": self._elicitation_id}
        self._forget_question()
        self._is_asked = True
        try:
            question = self._questions.ask(server, QuestionKind.ELICITATION, params, call_id=None, seconds=seconds)
        except TooManyQuestions:
            self._ask_callers_of(self._waiting)
            return True  # `list_servers` shows the address
        self._question = question
        self._ask_callers_of(self._waiting)
        try:
            answer = await self._questions.wait_for_answer(question)
        except QuestionClosed as gone:
            return gone.why is not Gone.CANCELLED
        return answer.get("action") == "accept"

    def ask_natively(self, asker: Asker | None, call: Call | None = None) -> None:
        """Ask this caller natively to log in, unless one was asked already."""
        native, question = self._questions.native, self._question
        if native is None or asker is None or question is None or self._is_answered or self._is_at_caller:
            return
        self._asked_by = asker if native.ask_at(asker, question, call) else None

    def _ask_callers_of(self, calls: Sequence[Call]) -> None:
        """Ask the callers of waiting calls. A call keeps waiting if its caller asks the person, or becomes a task."""
        for call in calls:
            self.ask_natively(call.asker, call)
            asked_by = self._asked_by if self._is_answered or self._is_at_caller else None
            self._calls.promote_for_question([call], asked_by=asked_by)

    @property
    def _is_answered(self) -> bool:
        """Whether the person agreed to log in and has not finished yet."""
        return self._question is not None and self._questions.find(self._question.request_id) is None

    @property
    def _is_at_caller(self) -> bool:
        native, question = self._questions.native, self._question
        return native is not None and question is not None and native.is_asked(question)

    def _forget_question(self) -> None:
        self._is_asked, self._question, self._asked_by = False, None, None

    def on_login_ended(self, reason: str | None) -> None:
        self._forget_question()
        if self._questions.native is not None:
            self._questions.native.complete(self._key.server, self._elicitation_id)
        if reason is not None:
            self._logins.watch_later_logins(self._key, self)
        self._on_end(reason)
