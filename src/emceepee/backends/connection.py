"""A session's connection to one backend: sends calls and owns the parts that do the rest."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from emceepee.backends.backend_lists import BackendLists
from emceepee.backends.backend_task import BackendTask
from emceepee.backends.caller_errors import BROKEN, not_answered, request_failed
from emceepee.backends.connection_events import ConnectionEvents, Observer
from emceepee.backends.connection_login import ConnectionLogin, wants_person
from emceepee.backends.dialer import Dialer
from emceepee.backends.health_check import HealthCheck
from emceepee.backends.http.resumption import Resumption
from emceepee.backends.input_rounds import INPUT_REQUIRED, InputRounds
from emceepee.backends.link import Link, LinkError, LinkFailure, Listener, NoAccess, RpcError, ServerFacts
from emceepee.backends.link_listener import LinkListener, SideListener
from emceepee.backends.links.link_settings import LinkSettings
from emceepee.backends.links.subscriptions import Subscriptions
from emceepee.backends.oauth.token_access import Authorizer
from emceepee.backends.process.stderr_lines import StderrLines
from emceepee.backends.recording.on_demand_recording import OnDemandRecording
from emceepee.backends.request_sender import EraChanged, RequestSender
from emceepee.backends.spec import BackendSpec, HttpTarget, StdioTarget
from emceepee.backends.supervisor import Supervisor
from emceepee.backends.tasks.backend_tasks import NO_PLAN, BackendTasks, CallPlan
from emceepee.backends.tasks.task_messages import CreatedTask
from emceepee.clock import Clock, give_up_after
from emceepee.errors import LoginNeeded
from emceepee.lifecycle import CLOSE_CONNECTION_SECONDS, CLOSE_LINK_SECONDS, TaskOwner, close_bounded
from emceepee.state.connection.connection_state import GAVE_WAY, ConnectionStatus, ConnectionView
from emceepee.state.connection.health import Health
from emceepee.state.limits import Limits
from emceepee.telemetry.spans import PhaseKind, phase
from emceepee.wire.json_types import JsonObject

T = TypeVar("T")


class Connection:
    """`state` is the current status, `ready()` waits for the link, and `close()` releases everything."""

    def __init__(
        self,
        spec: BackendSpec,
        listener: Listener,
        observer: Observer,
        *,
        dialer: Dialer,
        clock: Clock,
        limits: Limits,
        caller_id: str | None = None,
        principal: str = "",
        authorizer: Authorizer | None = None,
        spread: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.spec, self._observer = spec, observer
        self._limits, self._clock, self._dialer = limits, clock, dialer
        self._tasks = TaskOwner(f"connection:{spec.name}")
        events = ConnectionEvents(spec, observer)
        self.login = ConnectionLogin(spec.name, authorizer)
        self._supervisor = Supervisor(
            spec,
            lambda resumption: self._dial(principal, caller_id, resumption),
            events,
            self,
            tasks=self._tasks,
            clock=clock,
            limits=limits,
            spread=spread,
        )
        self.recording = OnDemandRecording(
            spec.name, lambda: dialer.recordings.in_memory(self.spec), self._supervisor.reconnect, events.signal_change
        )
        self._health = HealthCheck(events, self._tasks, clock=clock, limits=limits, spread=spread)
        self._subscriptions = Subscriptions(self._notify_of_change, self._tasks, clock)
        self.settings = LinkSettings(
            spec.name,
            self._subscriptions,
            observer,
            ready=self.ready,
            run_bounded=self._run_bounded,
            clock=clock,
            limits=limits,
        )
        self.lists = BackendLists(
            spec.tools,
            self._run_bounded,
            self._subscriptions,
            self._notify_of_change,
            tasks=self._tasks,
            clock=clock,
        )
        self._input_rounds = InputRounds(spec.name, listener, clock, limits)
        self._backend_tasks = BackendTasks(
            spec.name,
            self._ask_about_task,
            listener,
            self._tasks,
            clock,
            limits,
            outlive_link=isinstance(spec.target, HttpTarget),
        )
        self._listener = LinkListener(listener, self._subscriptions, self.lists, self._backend_tasks)
        self._leaves_session = False  # whether another process will resume our session at the backend
        self._sender = RequestSender(
            spec,
            dialer.eras,
            self.lists,
            self._backend_tasks,
            observer,
            retire=self._supervisor.retire,
            dial_side=partial(self._dial_side, principal, caller_id),
        )

    def __repr__(self) -> str:
        view, parts = self.state, [self.spec.name]
        parts.append(str(view.status))
        if view.attempt:
            parts.append(f"attempt={view.attempt} in {(self.next_retry_ms() or 0) / 1000:.1f} s")
        if self._supervisor.requests:
            parts.append(f"requests={self._supervisor.requests}")
        return f"<Connection {' '.join(parts)}>"

    @property
    def state(self) -> ConnectionView:
        return self._supervisor.state.view

    @property
    def is_connected(self) -> bool:
        return self.state.status is ConnectionStatus.CONNECTED

    @property
    def facts(self) -> ServerFacts | None:
        link = self._supervisor.link
        return link.facts if link else None

    @property
    def process(self) -> JsonObject | None:
        return self._supervisor.process

    @property
    def health(self) -> Health:
        return self._health.state

    @property
    def is_listening(self) -> bool:
        return bool(self._subscriptions.uris) or len(self._backend_tasks) > 0

    @property
    def idle_seconds(self) -> float:
        """Seconds since the session was last used; 0 if closing the link would lose anything."""
        if self._supervisor.live is None or self._supervisor.requests or self.is_listening:
            return 0.0
        return self._observer.idle_seconds

    def next_retry_ms(self) -> int | None:
        return self._supervisor.next_retry_ms()

    # Opening and closing.

    def start(self) -> None:
        """Begin to connect, unless already started."""
        self._supervisor.start()

    async def ready(self) -> Link:
        """Return the link once it is open. If it is lost, reconnect without waiting for the backoff.

        Raises:
            BackendDisconnected: it could not be opened, or is lost for good.
        """
        return await self._supervisor.ready()

    async def first_link(self) -> Link:
        """Connect with a single attempt. Raises: BackendDisconnected."""
        return await self._supervisor.ready(may_retry=False)

    async def reconnect(self) -> Link:
        """Replace the link from any state. The server chooses its era again."""
        self._sender.forget_era()
        return await self._supervisor.reconnect()

    def forget_era(self) -> None:
        """Make the server choose its era again at the next connect."""
        self._sender.forget_era()

    def end_login(self, reason: str | None) -> None:
        """Handle the end of a login: retry the connection, or fail it with `reason` if the login failed."""
        self._supervisor.end_login(reason)

    async def rest(self) -> None:
        """Close the link until the next use."""
        await self._supervisor.rest()

    def give_way(self) -> None:
        """Stop the process to free its slot for another one."""
        self._supervisor.begin_rest(GAVE_WAY)

    def stop_idle_process(self) -> None:
        """Stop the process of an idle session, unless the server has its own `idleStop`."""
        if isinstance(self.spec.target, StdioTarget) and self.spec.idle_stop is None and self.idle_seconds > 0:
            self._supervisor.begin_rest()

    async def close(self) -> None:
        """Close everything. This completes even if its caller is cancelled."""
        await close_bounded(self._close(), within=CLOSE_CONNECTION_SECONDS, what=f"the connection to {self.spec.name}")

    async def _close(self) -> None:
        self.recording.drop()
        await self._backend_tasks.finish_cancelling()
        await self._supervisor.close()
        await self._sender.side_link.close()
        await self._tasks.close(within=CLOSE_LINK_SECONDS)

    async def _dial(self, principal: str, caller_id: str | None, resumption: object | None) -> Link:
        """Raises: RpcError, LinkError."""
        if isinstance(self.spec.target, StdioTarget):
            self._listener.stderr_of_dial = StderrLines()
        dial = partial(
            self._dialer.dial,
            self.spec,
            self._listener,
            principal=principal,
            caller_id=caller_id,
            resumption=resumption,
            authorizer=self.login.authorizer,
            recorder=self.recording.recorder,
            occupant=self,
        )
        return await self.login.dial(dial)

    async def _dial_side(self, principal: str, caller_id: str | None) -> Link:
        """Raises: RpcError, LinkError, TimeoutError."""
        spec = replace(self.spec, mode="legacy")
        listener, authorizer = SideListener(self._listener), self.login.authorizer
        async with give_up_after(self._clock, self._limits.connect_seconds):
            return await self._dialer.dial(
                spec, listener, principal=principal, caller_id=caller_id, authorizer=authorizer
            )

    # Callbacks of the supervisor when a link opens or ends.

    def stderr_of_dial(self) -> str:
        """Return the standard error output of a process that did not answer; empty for a server at an address."""
        lines = self._listener.stderr_of_dial
        return "" if lines is None else lines.sentence()

    async def prepare_link(self, link: Link) -> None:
        """Restore the log level and the subscriptions on a new link. Lists are fetched again."""
        self._listener.stderr_of_dial = None
        self.lists.attach(link)
        self._subscriptions.attach(link)
        self._health.attach(link)
        self._backend_tasks.attach(link)
        if self._leaves_session:
            link.leave_session()
        await self.settings.restore(link)
        self.lists.compare_soon()

    def detach_link(self) -> None:
        self._backend_tasks.detach()
        self._subscriptions.detach()
        self._health.detach()
        if self._sender.side_link.is_idle:
            self._tasks.spawn(self._sender.side_link.close(), name="close the second link")

    def _notify_of_change(self, method: str, params: JsonObject) -> None:
        """Report a change that the backend itself could not report."""
        self._listener.handle_notification(method, params, None)

    # Calls that the backend runs as its own tasks.

    async def follow(self, task: BackendTask, *, origin: object) -> JsonObject:
        """Return the result of a call that another process made. Raises: EmceepeeError."""
        return await self._backend_tasks.resume(task, origin)

    def leave_task(self, origin: object) -> None:
        """Leave the backend's task of that call, and our session there, to another process that will follow it."""
        self._backend_tasks.leave(origin)
        self._leaves_session = True
        if self._supervisor.link is not None:
            self._supervisor.link.leave_session()

    def session_record(self) -> JsonObject | None:
        """Return the data for another process to resume our session at the backend, or None without a session."""
        resumption = self._supervisor.resumption
        return resumption.to_record() if isinstance(resumption, Resumption) else None

    def restore_session(self, record: JsonObject) -> None:
        """Resume a session that a previous process left at the backend. Raises: KeyError, TypeError, ValueError."""
        self._supervisor.resume_with(Resumption.from_record(record))

    async def _ask_about_task(self, work: Callable[[Link], Awaitable[T]]) -> T:
        """Raises: RpcError, LinkError, EmceepeeError."""
        return await self._run_once(work, PhaseKind.CALL)

    # Requests.

    async def request(
        self, method: str, params: JsonObject, *, origin: object | None = None, plan: CallPlan = NO_PLAN
    ) -> JsonObject:
        """Send a request to the backend and return its raw, final result. Its questions go to the listener.

        A request is retried once if the backend certainly did not receive it. If it needs a login, it is retried after
        the login. If the backend runs it as a task, the task is followed to its result.

        Raises:
            EmceepeeError: worded for the caller.
        """
        send = partial(self._sender.send, method, params, origin, plan)
        result = await self._run_on_link(send, method, origin=origin)
        if result.get("resultType") == INPUT_REQUIRED:  # inlines `wants_input`, to save a frame per call

            def send_again(following: JsonObject) -> Awaitable[JsonObject]:
                again = partial(self._sender.send, method, following, origin, plan)
                return self._run_on_link(again, method, origin=origin, is_first=False)

            result = await self._input_rounds.finish(result, params, send_again, origin)
        if type(result) is CreatedTask:
            is_modern = result.token is None
            return await self._backend_tasks.follow(result, origin, is_modern=is_modern, tool=str(params.get("name")))
        return result

    async def _run_on_link(
        self,
        work: Callable[[Link], Awaitable[T]],
        method: str,
        *,
        is_repeatable: bool = False,
        origin: object | None = None,
        is_first: bool = True,
    ) -> T:
        """Run `work` on the link. Retry it once, on a new link if necessary, if it did not run or is safe to repeat.

        With an `origin`, wait for a required login. `is_first` means that no part of the call has run yet.

        Raises:
            EmceepeeError
        """
        try:
            return await self._run_once(work, PhaseKind.CALL)
        except RpcError as error:
            raise request_failed(self.spec.name, method, error) from error
        except (NoAccess, LoginNeeded) as error:
            if origin is None or not wants_person(error):
                raise request_failed(self.spec.name, method, error) from error
            wants_login = True
        except EraChanged:
            wants_login = False
        except LinkError as error:
            wants_login = False
            if error.may_have_run and not (is_repeatable and error.failure in BROKEN):
                raise request_failed(self.spec.name, method, error) from error
        if wants_login:
            run_again = partial(self._run_once, work, PhaseKind.RETRY)
            return await self.login.run_after(run_again, method, origin, is_first=is_first)
        try:
            return await self._run_once(work, PhaseKind.RETRY)
        except (RpcError, LinkError) as error:
            raise request_failed(self.spec.name, method, error) from error

    async def _run_once(self, work: Callable[[Link], Awaitable[T]], seen_as: PhaseKind) -> T:
        link = self._supervisor.live
        if link is None:
            with phase(PhaseKind.CONNECTING, self.spec.name):
                link = await self.ready()
        try:
            with self._supervisor.in_use(), phase(seen_as, self.spec.name):
                result = await work(link)
        except NoAccess:
            raise  # the link still works
        except LinkError as error:
            if not error.may_have_run or error.failure is LinkFailure.SESSION_LOST:
                self._supervisor.report_lost(link, str(error))
            raise
        except RpcError:
            self._health.record_success()  # an error response is an answer
            raise
        self._health.record_success()
        return result

    async def _run_bounded(self, work: Callable[[Link], Awaitable[T]], method: str) -> T:
        """Run short work that is safe to repeat, with a timeout. Raises: EmceepeeError."""
        try:
            async with give_up_after(self._clock, self._limits.request_seconds):
                return await self._run_on_link(work, method, is_repeatable=True)
        except TimeoutError:
            raise not_answered(self.spec.name, method, self._limits.request_seconds) from None

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a short, read-only request.

        Raises:
            EmceepeeError
        """
        return await self._run_bounded(lambda link: link.request(method, params), method)
