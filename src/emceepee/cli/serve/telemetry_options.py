"""Options for observability: metrics, an audit log, and traces."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from urllib.parse import urlsplit

from emceepee.config.settings import ConfigError, HttpConfig
from emceepee.guard.access_control import LOOPBACK_NAMES
from emceepee.paths import TOKEN_VARIABLE
from emceepee.telemetry.log_writer import open_log_file
from emceepee.telemetry.telemetry_settings import TelemetrySettings

LAST_PORT = 65_535
_OTEL_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_OTLP, _OTLP_SIGNALS = "OTEL_EXPORTER_OTLP_", ("", "TRACES_", "METRICS_")
_OTLP_PROTOCOL = "http/protobuf"


def common_telemetry(options: argparse.Namespace) -> TelemetrySettings:
    """Raises: ConfigError."""
    if options.audit_arguments and options.audit_log is None:
        raise ConfigError("--audit-arguments needs an audit log: also pass --audit-log FILE")
    if options.audit_log is not None:
        try:
            os.close(open_log_file(options.audit_log))
        except OSError as error:
            raise ConfigError(f"the audit log {options.audit_log} cannot be used: {error.strerror}") from None
    if options.otel:
        _check_otel(os.environ)
    return TelemetrySettings(audit_log=options.audit_log, audit_arguments=options.audit_arguments, otel=options.otel)


def _check_otel(environ: Mapping[str, str]) -> None:
    try:
        is_there = all(find_spec(package) is not None for package in _OTEL_PACKAGES)
    except ModuleNotFoundError:  # raised for a missing parent package
        is_there = False
    if not is_there:
        raise ConfigError("--otel: the required packages are missing: install emceepee[otel]")
    for signal in _OTLP_SIGNALS:
        protocol, endpoint = (environ.get(f"{_OTLP}{signal}{what}", "") for what in ("PROTOCOL", "ENDPOINT"))
        if protocol not in ("", _OTLP_PROTOCOL):
            raise ConfigError(
                f"--otel: {_OTLP}{signal}PROTOCOL asks for {protocol!r}, and only {_OTLP_PROTOCOL} can be sent: leave "
                "it out, and give the collector's port for that, which is mostly 4318"
            )
        if endpoint and not endpoint.startswith(("http://", "https://")):
            raise ConfigError(f"--otel: {_OTLP}{signal}ENDPOINT must begin with http:// or https://")


def serve_telemetry(
    options: argparse.Namespace, common: TelemetrySettings, http: HttpConfig, *, worker: int | None, workers: int
) -> TelemetrySettings:
    """Read the telemetry options of `serve`.

    `worker` is this process's number if it is a worker. Raises: ConfigError.
    """
    if options.metrics:
        _check_shared(http, worker is not None or workers > 1)
    listen = None if options.metrics_listen is None else _listen(options.metrics_listen, worker or 0, workers)
    if listen is not None:
        _check_listen(listen[0], http)
    return replace(common, metrics=options.metrics, metrics_listen=listen)


def _check_shared(http: HttpConfig, has_siblings: bool) -> None:
    """Reject metrics on the callers' port if workers or several principals share it."""
    if has_siblings:
        raise ConfigError(
            "--metrics: each of several --workers has its own metrics, and any of them may receive a request; pass "
            "--metrics-listen HOST:PORT instead, and they listen on PORT, PORT+1, and so on"
        )
    if http.sole_principal is None:
        raise ConfigError(
            "--metrics: with several principals, each could see which servers the others use; pass --metrics-listen "
            "HOST:PORT instead"
        )


def _check_listen(host: str, http: HttpConfig) -> None:
    if host not in LOOPBACK_NAMES and not (http.asks_for_proof or http.insecure):
        raise ConfigError(
            f"--metrics-listen: listening on {host} accepts connections from other machines: set a token (--token or "
            f"{TOKEN_VARIABLE}), or pass --insecure"
        )


def _listen(text: str, worker: int, workers: int) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or port is None or (port and port + max(worker, workers - 1) > LAST_PORT):
        raise ConfigError(f"--metrics-listen: expected HOST:PORT, such as 127.0.0.1:9464, found {text!r}")
    return host, port + worker if port else 0
