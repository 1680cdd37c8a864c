import os
from pathlib import Path

from emceepee.config.source import folders_of, stamp_of


def test_a_rewritten_or_replaced_configuration_file_has_a_different_stamp(tmp_path: Path) -> None:
    file, other = tmp_path / "a.json", tmp_path / "b.json"
    assert stamp_of(file) is None
    file.write_text("{}")
    first = stamp_of(file)
    assert first == stamp_of(file)
    other.write_text("{}")
    other.replace(file)
    assert stamp_of(file) not in (None, first)


def test_the_watched_folder_of_a_regular_file_is_its_own(tmp_path: Path) -> None:
    assert folders_of(tmp_path / "a.json") == [tmp_path]


def test_the_folders_of_all_symbolic_links_in_a_path_are_watched(tmp_path: Path) -> None:
    """A Kubernetes volume is an example: the file leads through a link that is replaced at each change."""
    first, second, home = tmp_path / "..1", tmp_path / "..2", tmp_path / "home"
    for folder in (first, second, home):
        folder.mkdir()
        (folder / "a.json").write_text("{}")
    data = tmp_path / "..data"
    data.symlink_to(first.name)
    (tmp_path / "a.json").symlink_to("..data/a.json")
    link = home / "link.json"
    link.symlink_to(tmp_path / "a.json")
    before = folders_of(link)
    assert {home, tmp_path, first} <= set(before)
    turned = tmp_path / "..turned"
    turned.symlink_to(second.name)
    os.replace(turned, data)
    assert second in folders_of(link)
    assert first not in folders_of(link)


def test_circular_symbolic_links_do_not_loop_forever(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert folders_of(tmp_path / "a") == [tmp_path]
    assert stamp_of(tmp_path / "a") is None
