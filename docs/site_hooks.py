"""Hooks that adapt this repository for MkDocs: pages outside `docs`, links as on GitHub, and labeled code blocks."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ADDED = {f"project/{name}": name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
_LABEL = re.compile(r"^(```\w+) [^`\n]+$", re.MULTILINE)
_LINK = re.compile(r"(?P<text>!?\[[^\]]*\])\((?P<target>[^)\s]+)\)")


def github_slug(title: str, separator: str) -> str:
    """Anchors as they are written in the pages' links."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.mdx_configs["toc"] = {"slugify": github_slug}
    config.nav = [expanded(item, Path(config.docs_dir)) for item in config.nav or []]
    return config


def expanded(item: object, folder: Path) -> object:
    """A pattern in the navigation becomes the pages that fit it."""
    if isinstance(item, dict):
        return {title: expanded(below, folder) for title, below in item.items()}
    if isinstance(item, list):
        return [expanded(below, folder) for below in item]
    if isinstance(item, str) and "*" in item:
        return [path.relative_to(folder).as_posix() for path in sorted(folder.glob(item))]
    return item


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for place, name in ADDED.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Labels of code blocks are for the tests; links lead to pages of the site, or are left as words."""
    source = page.file.src_uri
    here = ADDED.get(source, f"docs/{source}")  # in the repository

    def relinked(found: re.Match[str]) -> str:
        file, mark, anchor = found["target"].partition("#")
        if not file or "://" in file:
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), file))
        place = target.removeprefix("docs/") if target.startswith("docs/") else f"project/{target}"
        if files.get_file_from_path(place) is None and (ROOT / target).exists():
            return found["text"].strip("![]")
        return f"{found['text']}({posixpath.relpath(place, posixpath.dirname(source) or '.')}{mark}{anchor})"

    return _LINK.sub(relinked, _LABEL.sub(r"\1", markdown))
