// Version 1 of the TypeScript SDK as a client of emceepee.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { calls, place, say } from "./lines.mjs";

const client = new Client({ name: "typescript-1", version: "1" });
const transport = place.url ? new StreamableHTTPClientTransport(new URL(place.url)) : new StdioClientTransport(place);
await client.connect(transport);
const { tools } = await client.listTools();
say({ version: transport.protocolVersion, tools: tools.map((tool) => tool.name) });
for await (const { tool, arguments: given } of calls()) {
  const steps = [];
  const onprogress = ({ progress }) => steps.push(progress);
  say({ ...(await client.callTool({ name: tool, arguments: given }, undefined, { onprogress })), steps });
}
await transport.terminateSession?.();
await client.close();
