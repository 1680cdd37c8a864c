from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from emceepee.backends.http1.tls_contexts import BadTlsFile, TlsSettings
from emceepee.backends.spec import HttpTarget
from emceepee.config.server_entry import ConfiguredEntry
from emceepee.tools.server_tools import AddServer
from support.system.certificates import Authority, split


def entry(**fields: Any) -> ConfiguredEntry:
    return ConfiguredEntry.model_validate({"name": "a", "url": "https://tracker.example/mcp"} | fields)


def problem(**fields: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        entry(**fields)
    return str(refused.value.errors()[0]["msg"])


def test_tls_files_are_resolved_relative_to_the_configuration_file(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    certificate, key = split(authority.issue("client"))
    names = {"ca": "tls/ca.pem", "cert": str(certificate), "key": "tls/client.key", "server_name": "tracker.internal"}
    target = entry(tls=names).spec_in(tmp_path).target
    assert isinstance(target, HttpTarget)
    assert target.tls == TlsSettings(
        ca=str(authority.file), cert=str(certificate), key=str(key), server_name="tracker.internal"
    )


def test_a_missing_tls_file_is_reported_when_the_configuration_is_read(tmp_path: Path) -> None:
    with pytest.raises(BadTlsFile, match=f"{tmp_path}/ca.pem: No such file") as refused:
        entry(tls={"ca": "ca.pem"}).spec_in(tmp_path)
    assert refused.value.setting == "ca"


def test_a_server_entry_without_tls_yields_the_usual_spec(tmp_path: Path) -> None:
    assert entry().spec_in(tmp_path) == entry().spec()


def test_incompatible_tls_settings_are_rejected_with_the_reason() -> None:
    assert "key requires cert" in problem(tls={"key": "x"})
    assert "insecure does not go with ca" in problem(tls={"insecure": True, "ca": "x"})
    assert "tls goes with a url that begins with https://" in problem(tls={}, url="http://tracker.example/mcp")
    assert "tls goes with a url that begins with https://" in problem(tls={}, url="unix:///run/x.sock:/mcp")
    assert "tls goes with a url that begins with https://" in problem(tls={}, url=None, command="x")
    assert "Extra inputs" in problem(tls={"cafile": "x"})


def test_callers_cannot_configure_tls_files_of_this_machine() -> None:
    assert "tls" not in AddServer.model_fields
    with pytest.raises(ValidationError):
        AddServer.model_validate({"name": "a", "url": "https://tracker.example/mcp", "tls": {"ca": "/etc/passwd"}})
