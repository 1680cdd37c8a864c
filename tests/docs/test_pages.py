"""The pages are correct: links resolve, configurations load, and calls match the tools."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from emceepee.backends.spec import RESERVED_NAME
from emceepee.cli.main import build_parser
from emceepee.config import file_reader as config_reading
from emceepee.config.secret_references import References
from emceepee.paths import CONFIG_VARIABLE
from emceepee.server.http.request_reader import MCP_PATH
from support.command_tree import commands_of
from support.documentation import ROOT, Block, Page, blocks, pages
from support.sessions.catalogue import CATALOGUE
from support.system.certificates import Authority, split

ENVIRONMENT = {"TRACKER_TOKEN": "a token", "TRACKER_SECRET": "a secret"}
LONGEST_README = 150
CHANGELOG = "CHANGELOG.md"  # its commands are those of the versions that it tells of
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
JSON_BLOCKS = blocks("json")
CONFIGURATIONS = [block for block in JSON_BLOCKS if not block.label]
ANSWERS = ("reply", "notice")  # labels of blocks that show what comes back; all others are tools, or "wrong" and a tool
CALLS = [block for block in JSON_BLOCKS if block.label and block.label not in ANSWERS and " " not in block.label]


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> References:
    """All that the pages refer to."""
    folder = tmp_path_factory.mktemp("configuration")
    split(Authority(folder / "tls").issue("client"))
    (folder / "secrets").mkdir()
    (folder / "secrets" / "archive-key").write_text("a key")
    keyring = {("mail", "ada"): "a password"}
    return References(
        environment=ENVIRONMENT, folder=folder, ask_keyring=lambda service, name: keyring.get((service, name))
    )


def name_of(item: Page | Block) -> str:
    return item.name if isinstance(item, Page) else f"{item.page}:{item.label or item.language}"


def servers_of(block: Block) -> dict[str, Any]:
    return dict(json.loads(block.body).get("mcpServers", {}))


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_relative_links_lead_to_a_file_and_a_heading(page: Page) -> None:
    broken = []
    for link in page.links():
        if re.match(r"https?://", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.path.parent / file).resolve() if file else page.path
        if not target.is_file() or (anchor and anchor not in Page(target).anchors()):
            broken.append(link)
    assert broken == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path not in reached and path.suffix == ".md":
            reached.add(path)
            waiting += [
                (path.parent / link.partition("#")[0]).resolve() for link in Page(path).links() if "://" not in link
            ]
    assert {page.name for page in pages()} - {path.relative_to(ROOT).as_posix() for path in reached} == set()


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= LONGEST_README


@pytest.mark.parametrize("block", JSON_BLOCKS, ids=name_of)
def test_json_blocks_in_the_docs_are_valid_json(block: Block) -> None:
    json.loads(block.body)


@pytest.mark.parametrize(
    "block", [item for item in CONFIGURATIONS if RESERVED_NAME not in servers_of(item)], ids=name_of
)
def test_server_lists_in_the_docs_load_without_a_warning(block: Block, references: References) -> None:
    loaded = config_reading.parse(block.body, source=block.page, references=references)
    assert loaded.servers
    assert (loaded.problems, loaded.warnings, loaded.ignored) == ((), (), ())
    assert (loaded.spelled_out, loaded.unverified) == ((), [])


@pytest.mark.parametrize(
    "block", [item for item in CONFIGURATIONS if RESERVED_NAME not in servers_of(item)], ids=name_of
)
def test_a_server_list_in_the_docs_starts_without_its_secrets_and_files(block: Block, tmp_path: Path) -> None:
    """A reader who tries a page has none of them. Only the servers that need them are disabled."""
    references = References(environment={}, folder=tmp_path, ask_keyring=lambda *_: None)
    loaded = config_reading.parse(block.body, source=block.page, references=references)
    assert [problem for problem in loaded.problems if problem.server is None] == []


@pytest.mark.parametrize("block", [item for item in CONFIGURATIONS if RESERVED_NAME in servers_of(item)], ids=name_of)
def test_client_configurations_in_the_docs_reach_emceepee_or_start_it_with_valid_flags(block: Block) -> None:
    ((name, server),) = servers_of(block).items()
    assert name == RESERVED_NAME
    if "url" in server:
        assert urlsplit(server["url"]).path == MCP_PATH
        return
    words = [server["command"], *server.get("args", [])]
    program, *arguments = words[1:] if words[0] == "uvx" else words
    assert Path(program).name in PROJECT["scripts"]
    build_parser().parse_args(arguments)  # exits if it does not understand
    inline = server.get("env", {}).get(CONFIG_VARIABLE)
    assert inline is None or config_reading.load(None, {CONFIG_VARIABLE: inline}).servers


@pytest.mark.parametrize("block", CALLS, ids=name_of)
def test_calls_in_the_docs_match_the_schema_of_their_tool(block: Block) -> None:
    CATALOGUE[block.label].check(json.loads(block.body))


@pytest.mark.parametrize("block", blocks("sh"), ids=name_of)
def test_commands_in_the_docs_exist(block: Block) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for line in block.body.splitlines():
        program, *arguments = line.partition("#")[0].split()
        if program == "make":
            assert set(arguments) <= set(targets)
        else:
            assert program in PROJECT["scripts"]
            build_parser().parse_args(["serve", *arguments] if program == "emceepee-http" else arguments)


@pytest.mark.parametrize("page", [page for page in pages() if page.commands() and page.name != CHANGELOG], ids=name_of)
def test_commands_in_running_text_exist_and_on_error_pages_are_complete(page: Page) -> None:
    """On other pages, a command name may stand without its arguments."""
    assert [command for command in page.commands() if not exists(command, as_name="errors/" not in page.name)] == []


def exists(command: str, *, as_name: bool) -> bool:
    program, *words = command.partition(" > ")[0].split()
    words = ["1" if word in ("N", "NUMBER", "PORT") else word for word in words]
    if as_name and " ".join(words) in COMMAND_NAMES:
        return True
    try:
        build_parser().parse_args(["serve", *words] if program == "emceepee-http" else words)
    except SystemExit as ended:
        return not ended.code
    return True


COMMAND_NAMES = frozenset(command.name for command in commands_of(build_parser()))


def test_every_dependency_has_a_documented_reason() -> None:
    node = json.loads((ROOT / "tests" / "node" / "package.json").read_text("utf-8"))
    extras = [item for extra in PROJECT["optional-dependencies"].values() for item in extra]
    wanted = [re.match(r"[\w.-]+", item) for item in [*PROJECT["dependencies"], *extras]]
    names = {found[0] for found in wanted if found} | set(node["dependencies"])
    listed = set(
        re.findall(r"^\| ([@\w./-]+) \| ", (ROOT / "docs/decisions/dependencies.md").read_text("utf-8"), re.MULTILINE)
    )
    assert listed - {"package", "---"} == names


def test_every_decision_record_is_listed_and_at_most_a_page_long() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = Page(folder / "README.md").links()
    for note in folder.glob("[0-9]*.md"):
        assert note.name in listed
        assert len(note.read_text("utf-8").splitlines()) <= 60
