from dataclasses import replace

from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.sessions.servers.server_changes import ServerChanges, compare_servers
from emceepee.state.tool_filter import ToolFilter
from support.sessions.scene import scripted_spec

ONE, TWO, THREE = (scripted_spec(name) for name in ("one", "two", "three"))


def test_equal_lists_differ_in_nothing_in_any_order() -> None:
    assert compare_servers([ONE, TWO], [TWO, replace(ONE)]) == ServerChanges()
    assert not ServerChanges()


def test_servers_are_added_and_removed_by_their_names() -> None:
    assert compare_servers([ONE, TWO], [TWO, THREE]) == ServerChanges(added=(THREE,), removed=("one",))


def test_every_setting_makes_it_another_server() -> None:
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


def test_other_words_leave_it_the_same_server() -> None:
    for other in (replace(ONE, description="what it is for"), replace(ONE, tags=("work",))):
        found = compare_servers([ONE], [other])
        assert (found.changed, found.reworded) == ((), (other,))
        assert found.reworded[0].words == other.words


def test_a_summary_names_what_happened_and_nothing_else() -> None:
    changes = ServerChanges(added=(ONE,), removed=("two",), changed=(THREE,))
    assert changes.summary() == {"added": ["one"], "changed": ["three"], "removed": ["two"]}
    assert ServerChanges().summary() == {}
