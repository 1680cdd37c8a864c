from dataclasses import replace

from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.sessions.servers.server_changes import ServerChanges, compare_servers
from emceepee.state.tool_filter import ToolFilter
from support.sessions.scene import scripted_spec

ONE, TWO, THREE = (scripted_spec(name) for name in ("one", "two", "three"))


def test_server_lists_that_differ_only_in_order_are_equal() -> None:
    assert compare_servers([ONE, TWO], [TWO, replace(ONE)]) == ServerChanges()
    assert not ServerChanges()


def test_servers_are_added_and_removed_by_name() -> None:
    assert compare_servers([ONE, TWO], [TWO, THREE]) == ServerChanges(added=(THREE,), removed=("one",))


def test_a_change_of_any_setting_makes_a_different_server() -> None:
    others: list[BackendSpec] = [
        replace(ONE, target=HttpTarget(url="http://elsewhere.test/mcp")),
        replace(ONE, target=HttpTarget(url=ONE.target.label, headers={"authorization": "Bearer new"})),
        replace(ONE, tools=ToolFilter(("a*",), ())),
        replace(ONE, timeout=1.0),
        replace(ONE, mode="legacy"),
        replace(ONE, roots=("file:///home",)),
    ]
    for other in others:
        assert compare_servers([ONE, TWO], [other, TWO]) == ServerChanges(changed=(other,))


def test_a_changed_description_leaves_the_server_the_same() -> None:
    for other in (replace(ONE, description="what it is for"), replace(ONE, tags=("work",))):
        found = compare_servers([ONE], [other])
        assert (found.changed, found.reworded) == ((), (other,))
        assert found.reworded[0].words == other.words


def test_a_summary_of_server_changes_lists_only_what_changed() -> None:
    changes = ServerChanges(added=(ONE,), removed=("two",), changed=(THREE,))
    assert changes.summary() == {"added": ["one"], "changed": ["three"], "removed": ["two"]}
    assert ServerChanges().summary() == {}
