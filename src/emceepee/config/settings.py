"""All settings in one frozen Config, and checks for settings that conflict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from emceepee.backends.http1.egress import EgressSettings
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.guard.access_control import LOOPBACK_NAMES
from emceepee.guard.caller_identity import LOCAL
from emceepee.paths import KEYRING, NATIVE_ELICITATION, NOTICES, SECRETS, STATE_VARIABLE, SYNCS, TOKEN_VARIABLE
from emceepee.state.limits import Limits
from emceepee.store.location import KEY_VARIABLE, BadLocation, StateLocation, parse_location
from emceepee.store.platform_keyring import NoKeyring, check_keyring
from emceepee.surface import Surface
from emceepee.telemetry.telemetry_settings import TelemetrySettings


class ConfigError(Exception):
    """The configuration cannot be used; the message names the location and the expected value."""


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """A mistake in the configuration file: its key and a description.

    It disables `server`. If `is_fatal`, emceepee does not start; any other setting gets its default.
    """

    key: str
    message: str
    server: str | None = None
    is_reference: bool = False
    is_fatal: bool = False
    missing: Path | None = None  # the file that is missing

    def __str__(self) -> str:
        return f"{self.key}: {self.message}"


@dataclass(frozen=True, slots=True)
class ConfigWarning:
    """A key in the configuration file that has no effect, and the reason."""

    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.key}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """Where `emceepee serve` listens, and which callers it accepts."""

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)  # token to principal
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    allow_commands: bool = False
    allow_urls: tuple[str, ...] = ()
    require_session: bool = False
    insecure: bool = False
    oauth_issuer: str | None = None
    oauth_resource: str | None = None
    oauth_scopes: tuple[str, ...] = ()
    public_url: str | None = None  # the URL at which browsers and authorization servers reach this server
    has_console: bool = True
    shares_port: bool = False  # several processes listen on the same port

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK_NAMES

    @property
    def asks_for_proof(self) -> bool:
        return bool(self.tokens) or self.oauth_issuer is not None

    @property
    def sole_principal(self) -> str | None:
        """The principal of all callers, or None if there can be several."""
        principals = set(self.tokens.values()) or {LOCAL}
        return None if self.oauth_issuer or len(principals) > 1 else principals.pop()

    def check(self) -> None:
        """Raises: ConfigError if it would be open to strangers."""
        if not (self.is_loopback or self.asks_for_proof or self.insecure):
            raise ConfigError(
                f"listening on {self.host} accepts connections from other machines: set a token (--token or "
                f"{TOKEN_VARIABLE}) or --oauth-issuer, or pass --insecure"
            )
        if self.oauth_issuer and not self.insecure and not _is_private_to_us(self.oauth_issuer):
            raise ConfigError(
                "--oauth-issuer must begin with https://: otherwise an attacker on the network could replace the keys"
            )
        if self.public_url is not None and not _is_private_to_us(self.public_url):
            raise ConfigError("--public-url must begin with https://: browsers send authorization codes there")
        if self.oauth_issuer and not self.oauth_resource:
            raise ConfigError("--oauth-issuer needs --oauth-resource, the public URL of this server's /mcp")


def _is_private_to_us(url: str) -> bool:
    """Return whether data from this URL is safe from tampering in transit."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in LOOPBACK_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaConfig:
    """How replicas that share this process's state connect to it."""

    listen: tuple[str, int] | None = None  # None: a Unix socket or a free loopback port, depending on the shared state
    tls_files: tuple[Path, ...] = ()  # certificate, key, and, if the CA is private, the CA certificate of all replicas
    slot: int | None = None  # None: the lowest free slot

    @classmethod
    def of(cls, listen: str | None, tls: str | None, slot: int | None) -> "ReplicaConfig":
        """Parse the command line values. Raises: ConfigError."""
        files = tuple(Path(part).expanduser() for part in tls.split(",")) if tls else ()
        if files and (len(files) not in (2, 3) or listen is None):
            raise ConfigError("--replica-tls: expected CERT,KEY or CERT,KEY,CA, together with --replica-listen")
        return cls(listen=None if listen is None else _replica_address(listen), tls_files=files, slot=slot)


def _replica_address(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or port is None or host in ("0.0.0.0", "::"):
        raise ConfigError(
            f"--replica-listen: expected the HOST:PORT by which the other replicas reach this one, found {text!r}"
        )
    return host, port


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings."""

    servers: tuple[BackendSpec, ...] = ()  # includes entries with mistakes, which have unusable targets
    disabled: tuple[BackendSpec, ...] = ()  # servers disabled in the file
    limits: Limits = field(default_factory=Limits)
    roots: tuple[str, ...] = ()  # offered to every server without its own roots
    notices: str = NOTICES[0]
    native_elicitation: str = NATIVE_ELICITATION[0]
    search_vectors: Path | None = None  # word vectors for codemode_search
    surface: Surface = Surface.FULL  # the default for callers that request none
    has_codemode: bool = True
    log_level: str = "info"
    log_format: str = "text"
    log_file: Path | None = None
    link_file: Path | None = None  # the file for the newest link to the console
    http: HttpConfig = field(default_factory=HttpConfig)
    replicas: ReplicaConfig = field(default_factory=ReplicaConfig)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    console_port: int | None = None  # the port of the console beside a stdio caller; None: no console
    state: str | None = None  # as written in the file: memory, sqlite, or sqlite:PATH; None: not set
    state_sync: str = SYNCS[0]
    secrets: str = SECRETS[0]
    # resolved from `state`, flags, and environment variables
    location: StateLocation = field(default_factory=StateLocation)
    session_name: str | None = None  # the named session that a stdio caller resumes
    egress: EgressSettings = field(default_factory=EgressSettings)
    ignored: tuple[str, ...] = ()  # unknown keys, for a warning
    spelled_out: tuple[str, ...] = ()  # keys whose values seem to be literal secrets, for a hint
    problems: tuple[ConfigProblem, ...] = ()  # all mistakes in the file
    warnings: tuple[ConfigWarning, ...] = ()  # settings of earlier versions

    @property
    def general_problem(self) -> str | None:
        """All mistakes that disable no server, as one text."""
        return "; ".join(str(problem) for problem in self.problems if problem.server is None) or None

    @property
    def unverified(self) -> list[str]:
        """Names of servers whose certificates are not verified, for a warning."""
        targets = {spec.name: spec.target for spec in self.servers}
        return [
            name
            for name, target in targets.items()
            if isinstance(target, HttpTarget) and target.tls is not None and target.tls.insecure
        ]


def locate_state(config: Config, given: str | None, environment: Mapping[str, str], *, usual: str) -> StateLocation:
    """Choose the state location: the flag `given`, else the variable, else the file, else `usual`.

    Raises: ConfigError.
    """
    sources = (
        ("--state", given),
        (STATE_VARIABLE, environment.get(STATE_VARIABLE)),
        ("state", config.state),
        ("", usual),
    )
    source, text = next((source, text) for source, text in sources if text)
    try:
        return parse_location(text, environment, sync=config.state_sync)
    except BadLocation as error:
        raise ConfigError(f"{source}: {error}") from None


def check_secrets(config: Config) -> None:
    """Check that the configured storage of tokens works. Raises: ConfigError."""
    if config.secrets != KEYRING:
        return
    if config.location.is_memory:
        raise ConfigError(
            "--secrets keyring keeps tokens after this process ends and needs state that lists them: also pass "
            "--state sqlite"
        )
    if config.location.redis is not None:
        raise ConfigError(
            f"--secrets keyring is for one machine, but state in Redis is for several: set {KEY_VARIABLE} instead to "
            f"encrypt tokens in Redis"
        )
    try:
        check_keyring()
    except NoKeyring as error:
        raise ConfigError(f"--secrets keyring: {error}") from None
