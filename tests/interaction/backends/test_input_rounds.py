import asyncio

from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.scene import a_scene

FINAL: JsonObject = {"resultType": "complete", "content": []}
PARAMS: JsonObject = {"name": "dig", "arguments": {"n": 1}}
QUESTION: JsonObject = {"a": {"method": "roots/list", "params": {}}}


async def test_a_connection_returns_only_final_results() -> None:
    backend = ScriptedBackend(modern=True)
    async with a_scene(one=backend) as scene, asyncio.timeout(5):
        origin = object()
        request = asyncio.create_task(scene.session.connection("one").request("tools/call", PARAMS, origin=origin))
        (await backend.next_asked()).reply(resultType="input_required", inputRequests=QUESTION)
        again = await backend.next_asked()
        assert (again.params["inputResponses"], again.origin) == ({"a": {"roots": []}}, origin)
        assert not request.done()
        again.reply(**FINAL)
        assert await request == FINAL
