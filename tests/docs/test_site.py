"""The pages form a site: each is in the navigation, links resolve, and all assets are local."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from support.documentation import ROOT

PARTS = ("docs", "mkdocs.yml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def build(checkout: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=60, check=False)


def a_copy(folder: Path) -> Path:
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, folder / part)
    return folder


def test_the_site_has_every_page_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    wanted = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    made = {path.relative_to(tmp_path): path.read_text("utf-8") for path in tmp_path.rglob("*.html")}
    assert {path.with_name("index.html") if path.stem == "README" else path for path in wanted} - made.keys() == set()
    for page in made.values():
        page = re.sub(r'<link rel="canonical"[^>]*>', "", page)  # says where the page is, and loads nothing
        assert re.findall(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="(?:https?:)?//[^"]*"', page) == []


def test_labeled_code_blocks_are_rendered_as_code_and_anchors_match_the_links(tmp_path: Path) -> None:
    build(ROOT, tmp_path)
    tutorial = (tmp_path / "tutorial.html").read_text("utf-8")
    assert '<code class="language-json">{&quot;server&quot;: &quot;demo&quot;' in tutorial
    assert "```" not in tutorial
    assert 'id="http--stdio"' in (tmp_path / "benchmarks.html").read_text("utf-8")


def test_a_broken_link_fails_the_site_build(tmp_path: Path) -> None:
    checkout = a_copy(tmp_path)
    with (checkout / "docs" / "tutorial.md").open("a", encoding="utf-8") as page:
        page.write("\n[nowhere](how-to/nowhere.md)\n")
    done = build(checkout, tmp_path / "site")
    assert done.returncode != 0
    assert "how-to/nowhere.md" in done.stderr


def test_a_page_outside_of_the_navigation_fails_the_site_build(tmp_path: Path) -> None:
    checkout = a_copy(tmp_path)
    (checkout / "docs" / "how-to" / "be-forgotten.md").write_text("# Be forgotten\n")
    done = build(checkout, tmp_path / "site")
    assert done.returncode != 0
    assert "be-forgotten.md" in done.stderr
