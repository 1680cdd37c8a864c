// The TypeScript SDK 1 as a client of emceepee over HTTP. Argument: the address. Standard output: what was found.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "http_client_1", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
await client.connect(transport);
const { tools } = await client.listTools();
const steps = [];
const wait = { name: "execute_tool", arguments: { server: "demo", tool: "dig", args: { seconds: 0.2, steps: 4 } } };
const dug = await client.callTool(wait, undefined, { onprogress: ({ progress }) => steps.push(progress) });
await transport.terminateSession();
await client.close();
console.log(JSON.stringify({ version: transport.protocolVersion, tools: tools.length, steps, said: dug.content[0].text }));
