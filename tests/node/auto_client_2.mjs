// The TypeScript client 2 over stdio; it finds out the era by a probe, for which it starts the command once more.
// Arguments: the command that starts emceepee. Standard output: the version it found, and its servers.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "auto_client_2", version: "1" }, { versionNegotiation: { mode: "auto" } });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const { structuredContent } = await client.callTool({ name: "list_tools", arguments: { server: "noted" } });
const version = client.getNegotiatedProtocolVersion();
await client.close();
console.log(JSON.stringify({ version, tools: structuredContent.tools.length }));
