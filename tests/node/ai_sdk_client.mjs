// The MCP client of the AI SDK, which implements the protocol itself.
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { calls, place, say } from "./lines.mjs";

const transport = place.url ? { type: "http", url: place.url } : new StdioTransport(place);
const client = await createMCPClient({ transport });
const tools = await client.tools();
say({ tools: Object.keys(tools) });
for await (const { tool, arguments: given } of calls()) {
  say(await tools[tool].execute(given, { toolCallId: "1", messages: [] }));
}
await client.close();
