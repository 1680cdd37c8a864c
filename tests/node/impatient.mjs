// What both impatient clients do: call a slow tool, give up, and look what has become of the call.
// `call(name, arguments, options)` calls a tool of emceepee. Standard output: two lines of JSON, before and after the end.
// `timeout` gives up after a second; `abort` when standard input ends, by when the test has seen the call arrive.
export async function giveUp(call, how) {
  const controller = new AbortController();
  if (how === "abort") process.stdin.on("end", () => controller.abort("the user changed her mind")).resume();
  const options = how === "abort" ? { signal: controller.signal } : { timeout: 1000 };
  const wait = { server: "web", tool: "wait" };
  const error = await call("execute_tool", wait, options).then(() => null, ({ message }) => message);
  const next = await call("list_tasks", {});
  const heard = eventsIn(next);
  let tasks = next.structuredContent.tasks;
  for (let tries = 0; how !== "abort" && !tasks.length && tries < 20; tries++) {
    // Over HTTP the next call may overtake the news that the client has given up.
    const { events } = (await call("await_activity", { timeout_ms: 20000 })).structuredContent;
    heard.push(...events.flatMap((group) => group.events.map(({ type }) => type)));
    tasks = (await call("list_tasks", {})).structuredContent.tasks;
  }
  console.log(JSON.stringify({ error, heard, tasks: tasks.map(({ status, toolName }) => [status, toolName]) }));
  if (!tasks.length) return;
  const result = await call("get_task_result", { task_id: tasks[0].taskId });
  console.log(JSON.stringify({ said: result.content[0].text, heard: eventsIn(result) }));
}

function eventsIn({ content }) {
  const blocks = content.slice(1).map(({ text }) => JSON.parse(text.slice(text.indexOf("\n") + 1)));
  return blocks.flatMap(({ events_since_last_response: events = [] }) => events.map(({ type }) => type));
}
