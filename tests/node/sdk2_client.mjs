// Version 2 of the TypeScript client. Second argument: how it negotiates the protocol version.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { calls, place, say } from "./lines.mjs";

const mode = process.argv[3];
const versionNegotiation = { mode: mode === "legacy" || mode === "auto" ? mode : { pin: mode } };
const client = new Client({ name: "typescript-2", version: "1" }, { versionNegotiation });
const transport = place.url ? new StreamableHTTPClientTransport(new URL(place.url)) : new StdioClientTransport(place);
await client.connect(transport);
const { tools } = await client.listTools();
say({ version: client.getNegotiatedProtocolVersion(), tools: tools.map((tool) => tool.name) });
for await (const { tool, arguments: given } of calls()) {
  const steps = [];
  const onprogress = ({ progress }) => steps.push(progress);
  say({ ...(await client.callTool({ name: tool, arguments: given }, { onprogress })), steps });
}
await client.close();
