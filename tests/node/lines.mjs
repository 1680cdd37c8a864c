// How a test drives a client program: a tool call per line on standard input, on standard output what came of it.
// The first argument says where emceepee is: {url} or {command, args, env}. The first line out tells of the connection.
import { createInterface } from "node:readline";

export const place = JSON.parse(process.argv[2]);

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// The tool and its arguments; undefined when the test has no more.
export async function nextCall() {
  const { value, done } = await lines.next();
  return done ? undefined : JSON.parse(value);
}

export async function* calls() {
  for (let call = await nextCall(); call; call = await nextCall()) yield call;
}

export const say = (found) => console.log(JSON.stringify(found));
