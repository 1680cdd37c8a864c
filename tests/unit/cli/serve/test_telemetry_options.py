"""Metrics are served only where the operator configures it."""

import argparse
import sys
from pathlib import Path

import pytest

from emceepee.cli.serve.telemetry_options import common_telemetry, serve_telemetry
from emceepee.config.settings import ConfigError, HttpConfig
from emceepee.telemetry.telemetry_settings import TelemetrySettings


def settings(
    listen: str | None = None,
    *,
    metrics: bool = False,
    http: HttpConfig | None = None,
    worker: int | None = None,
    workers: int = 1,
) -> TelemetrySettings:
    options = argparse.Namespace(metrics=metrics, metrics_listen=listen)
    return serve_telemetry(options, TelemetrySettings(), http or HttpConfig(), worker=worker, workers=workers)


def options(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**{"audit_log": None, "audit_arguments": False, "otel": False, **given})


def test_metrics_are_disabled_by_default() -> None:
    assert not settings().wants_metrics
    assert settings(metrics=True).wants_metrics


@pytest.mark.parametrize(
    ("listen", "worker", "expected"),
    [
        ("127.0.0.1:9464", None, ("127.0.0.1", 9464)),
        ("[::1]:9464", None, ("::1", 9464)),
        ("127.0.0.1:9464", 2, ("127.0.0.1", 9466)),
        ("127.0.0.1:0", 2, ("127.0.0.1", 0)),
    ],
)
def test_each_worker_has_its_own_metrics_port(listen: str, worker: int | None, expected: tuple[str, int]) -> None:
    assert settings(listen, worker=worker).metrics_listen == expected


@pytest.mark.parametrize("listen", ["9464", ":9464", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:65535"])
def test_an_invalid_metrics_address_is_rejected_with_an_example(listen: str) -> None:
    with pytest.raises(ConfigError, match=r"expected HOST:PORT, such as 127\.0\.0\.1:9464"):
        settings(listen, workers=2)


def test_the_caller_port_serves_no_metrics_for_workers_or_several_principals() -> None:
    with pytest.raises(ConfigError, match="--metrics-listen"):
        settings(metrics=True, workers=2)
    with pytest.raises(ConfigError, match="several principals"):
        settings(metrics=True, http=HttpConfig(tokens={"a" * 20: "ann", "b" * 20: "bob"}))


def test_a_metrics_port_open_to_other_machines_requires_a_token() -> None:
    with pytest.raises(ConfigError, match="--token"):
        settings("0.0.0.0:9464")
    assert settings("0.0.0.0:9464", http=HttpConfig(tokens={"a" * 20: "ann"})).metrics_listen == ("0.0.0.0", 9464)
    assert settings("0.0.0.0:9464", http=HttpConfig(insecure=True)).metrics_listen == ("0.0.0.0", 9464)


def test_an_unusable_audit_log_is_an_error_at_startup(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=r"the audit log .* cannot be used: it is a symbolic link"):
        common_telemetry(options(audit_log=link))
    with pytest.raises(ConfigError, match="--audit-log FILE"):
        common_telemetry(options(audit_arguments=True))


def test_opentelemetry_is_enabled_only_by_its_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.test:4318")
    assert not common_telemetry(options()).otel
    assert common_telemetry(options(otel=True)).otel


@pytest.mark.parametrize("package", ["opentelemetry.sdk", "opentelemetry.exporter"])
def test_opentelemetry_without_its_packages_is_an_error_with_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    for name in [name for name in sys.modules if name.startswith(package)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=r"--otel: .* install emceepee\[otel\]"):
        common_telemetry(options(otel=True))


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", r"only http/protobuf can be sent: .* 4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "only http/protobuf can be sent"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "ann:secret@collector:4318", "must begin with http:// or https://$"),
    ],
)
def test_an_unsupported_exporter_setting_is_an_error_at_startup(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=words):
        common_telemetry(options(otel=True))
