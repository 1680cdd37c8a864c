from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import START
from support.sessions.scene import a_scene


async def test_log_messages_become_log_entries_and_all_other_messages_become_notifications() -> None:
    backend = ScriptedBackend()
    async with a_scene(demo=backend) as scene:
        listener = backend.link.listener
        listener.handle_notification("notifications/message", {"level": "error", "data": "x"}, None)
        listener.handle_output("y", "stderr")
        listener.handle_output("z", "stdout")
        listener.handle_notification("notifications/resources/updated", {"uri": "a://b"}, None)
        listener.handle_notification("custom/thing", {}, None)
        [buffers] = scene.session.buffers_of("demo")
        assert [(line.source, line.data, line.at) for line in buffers.logs] == [
            ("protocol", "x", START),
            ("stderr", "y", START),
            ("stdout", "z", START),
        ]
        assert [item.method for item in buffers.notifications] == ["notifications/resources/updated", "custom/thing"]


async def test_a_change_notification_invalidates_the_cached_list() -> None:
    backend = ScriptedBackend(tools=["old"])
    async with a_scene(demo=backend) as scene:
        await scene.value("list_tools")
        backend.answers["tools/list"] = lambda _: {"tools": [{"name": "new"}]}
        backend.link.listener.handle_notification("notifications/tools/list_changed", {}, None)
        listed = await scene.value("list_tools", detail="names")
        assert listed["tools"] == [{"server": "demo", "name": "new"}]
