// The TypeScript SDK as a client of emceepee. Arguments: the command that starts emceepee.
// Standard input: a server entry for add_server. Standard output: what was found, as one JSON object.
import { text } from "node:stream/consumers";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const entry = JSON.parse(await text(process.stdin));
const client = new Client({ name: "sdk_client", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));

const call = (name, parameters) => client.callTool({ name, arguments: parameters });
const { tools } = await client.listTools();
const added = await call("add_server", entry);
const listed = await call("list_tools", { server: entry.name, detail: "names" });
const echoed = await call("execute_tool", { server: entry.name, tool: "echo", args: { message: "hello" } });
const refused = await call("execute_tool", { server: "nobody", tool: "echo" });
await client.close();

console.log(
  JSON.stringify({
    server: client.getServerVersion().name,
    tools: tools.map((tool) => tool.name),
    added: added.structuredContent,
    listed: listed.structuredContent,
    echoed,
    refused,
  }),
);
