"""Clients' entries, translated into emceepee's configuration."""

from pathlib import Path
from typing import Any

import pytest

from emceepee.clients.client_file import ClientFile
from emceepee.clients.entry_reader import FoundServer, servers_of
from emceepee.clients.known_clients import client_called
from emceepee.config.secret_references import References

REFERENCES = References(environment={"HOME": "/home/ada", "TOKEN": "t"})


def found(client: str, text: str, name: str = "x.json") -> dict[str, FoundServer]:
    file = ClientFile(client=client_called(client), path=Path(name), content=text.encode())
    return {server.name: server for server in servers_of(file, REFERENCES)}


def only(client: str, text: str, name: str = "x.json") -> Any:
    [server] = found(client, text, name).values()
    assert server.entry is not None, server.problem
    return server.entry


def test_a_client_entry_with_arguments_and_variables_is_read_unchanged() -> None:
    text = '{"mcpServers": {"git": {"command": "uvx", "args": ["g"], "env": {"A": 1, "B": true}, "cwd": "/x"}}}'
    assert only("claude-desktop", text) == {
        "command": "uvx",
        "args": ["g"],
        "env": {"A": "1", "B": "true"},
        "cwd": "/x",
    }


@pytest.mark.parametrize(
    ("client", "entry", "expected"),
    [
        ("claude-code", '{"type": "http", "url": "http://x", "headers": {"A": "b"}}', {"type": "http"}),
        ("cursor", '{"url": "http://x", "headers": {"A": "b"}}', {}),
        ("windsurf", '{"serverUrl": "http://x", "headers": {"A": "b"}}', {}),
        ("gemini-cli", '{"httpUrl": "http://x", "headers": {"A": "b"}}', {}),
        ("cline", '{"type": "streamableHttp", "url": "http://x", "headers": {"A": "b"}}', {"type": "http"}),
        ("claude-code", '{"type": "sse", "url": "http://x", "headers": {"A": "b"}}', {"type": "sse"}),
    ],
)
def test_a_client_entry_may_name_its_url_in_many_ways(client: str, entry: str, expected: dict[str, str]) -> None:
    assert only(client, f'{{"mcpServers": {{"a": {entry}}}}}') == {"url": "http://x", "headers": {"A": "b"}} | expected


def test_codex_entries_may_name_variables_for_secrets() -> None:
    text = """
[mcp_servers.a]
url = "https://x"
bearer_token_env_var = "TOKEN"
env_http_headers = { X-Key = "TOKEN" }
tool_timeout_sec = 30
enabled_tools = ["read"]
[mcp_servers.b]
command = "x"
env_vars = ["TOKEN"]
enabled = false
"""
    servers = found("codex", text, "config.toml")
    assert servers["a"].entry == {
        "url": "https://x",
        "headers": {"X-Key": "${env:TOKEN}", "Authorization": "Bearer ${env:TOKEN}"},
        "allowedTools": ["read"],
        "timeout_ms": 30_000,
    }
    assert servers["b"].entry == {"command": "x", "env": {"TOKEN": "${env:TOKEN}"}, "disabled": True}


def test_goose_keeps_its_own_extensions_and_secrets() -> None:
    text = """
extensions:
  developer: {type: builtin, enabled: true}
  web: {type: streamable_http, uri: "http://x", timeout: 300, enabled: true}
  git: {type: stdio, cmd: uvx, args: [g], envs: {A: b}, env_keys: [SECRET], enabled: false}
"""
    servers = found("goose", text, "config.yaml")
    assert (servers["developer"].entry, servers["developer"].problem) == (
        None,
        "it is part of the client itself (type builtin)",
    )
    assert servers["web"].entry == {"url": "http://x", "type": "http", "timeout_ms": 300_000}
    assert servers["git"].entry == {"command": "uvx", "args": ["g"], "env": {"A": "b"}, "disabled": True}
    assert servers["git"].notes[0].startswith("env_keys was omitted: the client stores them")


def test_opencode_has_two_file_formats_and_its_own_references() -> None:
    older = '{"mcp": {"a": {"type": "local", "command": ["x", "y"], "environment": {"T": "{env:TOKEN}"}}}}'
    assert only("opencode", older) == {"command": "x", "args": ["y"], "env": {"T": "${env:TOKEN}"}}
    mixed = '{"mcp": {"servers": {"a": {"type": "remote", "url": "http://n"}}, "a": {"url": "http://o"}, "b": {"url": "http://b"}}}'
    assert {name: server.entry for name, server in found("opencode", mixed).items()} == {
        "a": {"url": "http://n"},
        "b": {"url": "http://b"},
    }


def test_continue_has_a_list_of_servers_and_its_own_secret_syntax() -> None:
    text = """
mcpServers:
  - name: web
    type: streamable-http
    url: https://x
    requestOptions: {headers: {Authorization: "Bearer ${{ secrets.TOKEN }}"}}
"""
    assert only("continue", text, "config.yaml") == {
        "url": "https://x",
        "type": "http",
        "headers": {"Authorization": "Bearer ${env:TOKEN}"},
    }


def test_zed_entries_of_extensions_cannot_be_imported() -> None:
    text = """{
      // mine
      "context_servers": {
        "a": {"source": "extension", "settings": {"key": 1}},
        "b": {"command": {"path": "x", "args": ["y"], "env": {"A": "b"}}},
      },
    }"""
    servers = found("zed", text)
    assert servers["a"].problem.startswith("it belongs to an extension of the client")
    assert servers["b"].entry == {"command": "x", "args": ["y"], "env": {"A": "b"}}


def test_a_client_entry_with_an_unknown_reference_is_imported_disabled() -> None:
    text = '{"servers": {"a": {"command": "x", "env": {"K": "${input:key}", "H": "${userHome}/y"}}}}'
    [server] = found("vscode", text).values()
    assert server.entry == {"command": "x", "env": {"K": "${input:key}", "H": "${HOME}/y"}, "disabled": True}
    assert server.notes == (
        "imported disabled, because ${input:key} is not a reference: input is not a supported source; there are env, "
        "file, keyring",
    )


def test_gemini_variables_in_shell_syntax_become_references() -> None:
    text = '{"mcpServers": {"a": {"command": "x", "env": {"A": "$TOKEN", "B": "${TOKEN}"}, "trust": true}}}'
    [server] = found("gemini-cli", text).values()
    assert server.entry == {"command": "x", "env": {"A": "${env:TOKEN}", "B": "${TOKEN}"}}
    assert server.notes == ("trust was omitted: the client decides which tools run without confirmation",)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{}", "it has neither a command nor a URL"),
        ("5", "it is no object"),
        ('{"url": "ftp://x"}', "its URL must begin with http:// or https://"),
        ('{"type": "ws", "url": "ws://x"}', "emceepee knows no transport 'ws'"),
        ('{"command": ["x", null]}', "its command and args must be texts"),
    ],
)
def test_a_client_entry_that_emceepee_cannot_run_is_reported_with_the_reason(entry: str, problem: str) -> None:
    [server] = found("cursor", f'{{"mcpServers": {{"a": {entry}}}}}').values()
    assert (server.entry, server.problem) == (None, problem)
