// The TypeScript client 2 as a client of emceepee over HTTP. Arguments: the address and the negotiation mode.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [address, mode] = process.argv.slice(2);
const versionNegotiation = { mode: mode === "legacy" || mode === "auto" ? mode : { pin: mode } };
const client = new Client({ name: "http_client_2", version: "1" }, { versionNegotiation });
await client.connect(new StreamableHTTPClientTransport(new URL(address)));
const { tools } = await client.listTools();
const steps = [];
const wait = { name: "execute_tool", arguments: { server: "demo", tool: "dig", args: { seconds: 0.2, steps: 4 } } };
const dug = await client.callTool(wait, { onprogress: ({ progress }) => steps.push(progress) });
const version = client.getNegotiatedProtocolVersion();
await client.close();
console.log(JSON.stringify({ version, tools: tools.length, steps, said: dug.content[0].text }));
