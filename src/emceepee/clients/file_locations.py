"""Find the client files to read and the file to write."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from emceepee.clients.client_file import ClientFile
from emceepee.clients.client_program import ClientProgram, Format
from emceepee.clients.known_clients import CLIENTS
from emceepee.config.document_errors import ClientError


def present_files(clients: Sequence[ClientProgram], environment: Mapping[str, str], platform: str) -> list[ClientFile]:
    """Return these clients' existing files, each client's in its search order. Raises: ClientError."""
    return [
        ClientFile.at(client, path)
        for client in clients
        for path in (*_user_files(client, environment, platform), *client.folder_files(environment))
        if path.exists()
    ]


def files_to_write(
    client: ClientProgram, environment: Mapping[str, str], platform: str
) -> tuple[list[ClientFile], list[Path]]:
    """Return the files to write, and the files of programs that are not installed.

    For a client of one program, choose its first existing file, else the usual one. For a client of several programs,
    choose one file per installed program, or all files if none seems to be installed. Raises: ClientError.
    """
    paths = _user_files(client, environment, platform)
    if folders := client.program_folders(environment, platform):
        places = list(zip(folders, paths, strict=True))
        here = [path for folder, path in places if folder.is_dir()] or list(paths)
        return [ClientFile.at(client, path) for path in here], [path for path in paths if path not in here]
    with_its_folder = [path for path in paths if path.parent.is_dir()]
    found = next((path for path in paths if path.exists()), None)
    return [ClientFile.at(client, found or next(iter(with_its_folder), paths[0]))], []


def file_named(path: Path, client: ClientProgram | None) -> ClientFile:
    """Return the file that `--from` names. If `client` is None, guess it from the content. Raises: ClientError."""
    if not path.exists():
        raise ClientError(f"{path}: no such file")
    if client is not None:
        return ClientFile.at(client, path)
    candidates = list(_candidates(path))
    first = ClientFile.at(candidates[0], path)
    document = first.document()  # parse once: the format depends only on the path, and the file may be large
    for candidate in candidates:
        file = replace(first, client=candidate)
        if file.entries(document):
            return file
    raise ClientError(f"{path}: no servers were found in it; also specify the client whose file it is")


def servers_of_projects(file: ClientFile) -> int:
    """Return how many servers Claude Code stores for single projects."""
    projects = file.document().get("projects") if file.client.key == "claude-code" else None
    if not isinstance(projects, dict):
        return 0
    return sum(len(each.get("mcpServers") or ()) for each in projects.values() if isinstance(each, dict))


def _candidates(path: Path) -> Iterator[ClientProgram]:
    kind = {".toml": Format.TOML, ".yaml": Format.YAML, ".yml": Format.YAML}.get(path.suffix, Format.JSON)
    alike = [client for client in CLIENTS if client.format is kind]
    yield from (client for client in alike if any(Path(name).name == path.name for name in client.files))
    yield from alike


def _user_files(client: ClientProgram, environment: Mapping[str, str], platform: str) -> tuple[Path, ...]:
    try:
        return client.user_files(environment, platform)
    except RuntimeError:
        raise ClientError("this user has no home directory; set HOME") from None
