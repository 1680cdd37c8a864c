// The AI SDK with a model that the test plays: it says what it is shown, and calls the tools that the test wants.
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { generateText, isStepCount } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { nextCall, place, say } from "./lines.mjs";

const TURNS = 100;
const usage = { inputTokens: {}, outputTokens: {} };

async function doGenerate({ prompt, tools }) {
  const last = prompt.at(-1);
  say(last.role === "tool" ? last.content[0].output : { tools: tools.map((tool) => tool.name) });
  const call = await nextCall();
  if (!call) return answer({ type: "text", text: "Done." }, "stop");
  const { tool, arguments: given } = call;
  const input = JSON.stringify(given);
  return answer({ type: "tool-call", toolCallId: `${prompt.length}`, toolName: tool, input }, "tool-calls");
}

const answer = (part, unified) => ({ content: [part], finishReason: { unified }, usage, warnings: [] });

const transport = place.url ? { type: "http", url: place.url } : new StdioTransport(place);
const client = await createMCPClient({ transport });
const model = new MockLanguageModelV4({ doGenerate });
await generateText({ model, tools: await client.tools(), stopWhen: isStepCount(TURNS), prompt: "Book a table." });
await client.close();
