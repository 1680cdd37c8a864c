// The TypeScript SDK 1 as a client that gives up. Arguments: timeout or abort; then the address, or the command that
// starts emceepee.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { giveUp } from "./impatient.mjs";

const [how, place, ...args] = process.argv.slice(2);
const client = new Client({ name: "impatient_client_1", version: "1" });
const transport = place.startsWith("http:")
  ? new StreamableHTTPClientTransport(new URL(place))
  : new StdioClientTransport({ command: place, args, env: process.env });
await client.connect(transport);
await giveUp((name, parameters, options) => client.callTool({ name, arguments: parameters }, undefined, options), how);
await client.close();
