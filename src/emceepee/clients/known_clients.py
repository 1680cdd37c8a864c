"""The clients that emceepee supports, each declared once. For other clients, use `npx add-mcp`."""

from emceepee.clients.client_program import ClientProgram, Format, Words
from emceepee.config.document_errors import ClientError
from emceepee.errors import near_names

PATIENCE_SECONDS = 960  # longer than the longest call that emceepee waits for, so that the client never times out first
START_SECONDS = 60
_MACOS_CODE = "~/Library/Application Support/Code/User"
_EDITOR_VARIABLES = ((r"\$\{userHome\}", "${HOME}"), (r"\$\{(?:pathSeparator|/)\}", "/"))
_CLINE = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"

CLIENTS = (
    ClientProgram(
        key="claude-code",
        title="Claude Code",
        files=("~/.claude.json",),
        project_file=".mcp.json",
        variable=("CLAUDE_CONFIG_DIR", ".claude.json"),
        words=Words(http_type="http", stdio_type="stdio"),
        afterwards="Start a new session",
    ),
    ClientProgram(
        key="claude-desktop",
        title="Claude Desktop",
        files=("$XDG_CONFIG_HOME/Claude/claude_desktop_config.json",),
        macos_files=("~/Library/Application Support/Claude/claude_desktop_config.json",),
        words=Words(http_type="http"),
        afterwards="Quit it and start it again",
    ),
    ClientProgram(
        key="cursor",
        title="Cursor",
        files=("~/.cursor/mcp.json",),
        project_file=".cursor/mcp.json",
        expansions=_EDITOR_VARIABLES,
        afterwards="Enable it in its MCP settings, if it asks",
    ),
    ClientProgram(
        key="vscode",
        title="VS Code",
        files=("$XDG_CONFIG_HOME/Code/User/mcp.json",),
        macos_files=(f"{_MACOS_CODE}/mcp.json",),
        project_file=".vscode/mcp.json",
        path=("servers",),
        words=Words(http_type="http", stdio_type="stdio"),
        expansions=_EDITOR_VARIABLES,
        afterwards="Start it with the command MCP: List Servers",
    ),
    ClientProgram(
        key="codex",
        title="Codex",
        files=("~/.codex/config.toml",),
        project_file=".codex/config.toml",
        variable=("CODEX_HOME", "config.toml"),
        format=Format.TOML,
        path=("mcp_servers",),
        words=Words(headers="http_headers"),
        load_flags={"startup_timeout_sec": START_SECONDS, "tool_timeout_sec": PATIENCE_SECONDS},
        afterwards="Start a new session",
    ),
    ClientProgram(
        key="windsurf",
        title="Windsurf",
        files=("~/.codeium/windsurf/mcp_config.json",),
        words=Words(url="serverUrl"),
        afterwards="Press Refresh in its MCP settings",
    ),
    ClientProgram(
        key="gemini-cli",
        title="Gemini CLI",
        files=("~/.gemini/settings.json",),
        project_file=".gemini/settings.json",
        words=Words(http_type="http"),
        load_flags={"timeout": PATIENCE_SECONDS * 1000},
        expansions=((r"\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)", r"${env:\g<name>}"),),
        afterwards="Start a new session",
    ),
    ClientProgram(
        key="zed",
        title="Zed",
        files=("$XDG_CONFIG_HOME/zed/settings.json",),
        macos_files=("~/.config/zed/settings.json", "~/Library/Application Support/Zed/settings.json"),
        project_file=".zed/settings.json",
        path=("context_servers",),
        words=Words(fixed={"source": "custom"}),
        afterwards="It takes the change up by itself",
    ),
    ClientProgram(
        key="cline",
        title="Cline",
        files=(f"$XDG_CONFIG_HOME/Code/User/{_CLINE}", "~/.cline/data/settings/cline_mcp_settings.json"),
        macos_files=(f"{_MACOS_CODE}/{_CLINE}", "~/.cline/data/settings/cline_mcp_settings.json"),
        programs=("$XDG_CONFIG_HOME/Code/User", "~/.cline"),
        macos_programs=(_MACOS_CODE, "~/.cline"),
        words=Words(http_type="streamableHttp", fixed={"disabled": False}),
        load_flags={"timeout": PATIENCE_SECONDS},
        afterwards="It takes the change up by itself",
    ),
    ClientProgram(
        key="continue",
        title="Continue",
        files=("~/.continue/config.yaml",),
        folder="~/.continue/mcpServers",
        project_file=".continue/mcpServers/emceepee.yaml",
        format=Format.YAML,
        is_list=True,
        words=Words(http_type="streamable-http", repeats_name=True),
        expansions=((r"\$\{\{\s*secrets\.(?P<name>[A-Za-z0-9_]+)\s*\}\}", r"${env:\g<name>}"),),
        new_file="name: Local\nversion: 1.0.0\nschema: v1\n",
        afterwards="It takes the change up by itself; tools are there in agent mode",
    ),
    ClientProgram(
        key="goose",
        title="Goose",
        files=("$XDG_CONFIG_HOME/goose/config.yaml",),
        macos_files=("~/.config/goose/config.yaml",),
        project_file=".goose/config.yaml",
        format=Format.YAML,
        path=("extensions",),
        words=Words(
            url="uri",
            http_type="streamable_http",
            stdio_type="stdio",
            command="cmd",
            env="envs",
            repeats_name=True,
            fixed={"description": "", "enabled": True},
        ),
        load_flags={"timeout": PATIENCE_SECONDS},
        afterwards="Start a new session",
    ),
    ClientProgram(
        key="opencode",
        title="opencode",
        files=("$XDG_CONFIG_HOME/opencode/opencode.jsonc", "$XDG_CONFIG_HOME/opencode/opencode.json"),
        project_file="opencode.jsonc",
        path=("mcp",),
        newer_path=("mcp", "servers"),
        newer_words=Words(http_type="remote", stdio_type="local", joins_args=True, env="environment"),
        words=Words(
            http_type="remote", stdio_type="local", joins_args=True, env="environment", fixed={"enabled": True}
        ),
        load_flags={"timeout": START_SECONDS * 1000},
        expansions=((r"\{(?P<kind>env|file):(?P<what>[^{}]+)\}", r"${\g<kind>:\g<what>}"),),
        afterwards="Start it again",
    ),
)
_BY_KEY = {client.key: client for client in CLIENTS}
_ALIASES = {"gemini": "gemini-cli", "claude": "claude-code", "code": "vscode", "vs-code": "vscode"}


def client_called(name: str) -> ClientProgram:
    """Raises: ClientError."""
    key = name.lower().replace(" ", "-").replace("_", "-")
    found = _BY_KEY.get(_ALIASES.get(key, key))
    if found is None:
        near = near_names(key, list(_BY_KEY))
        hint = f"Did you mean {' or '.join(near)}? " if near else ""
        raise ClientError(
            f'no client is called "{name}". {hint}There are {", ".join(_BY_KEY)}. For others, npx add-mcp can write '
            "the entry, and import --from FILE can read it"
        )
    return found
