// The TypeScript client 2 as a client that gives up. Arguments: timeout or abort; the negotiation mode; then the
// address, or the command that starts emceepee.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { giveUp } from "./impatient.mjs";

const [how, mode, place, ...args] = process.argv.slice(2);
const versionNegotiation = { mode: mode === "legacy" || mode === "auto" ? mode : { pin: mode } };
const client = new Client({ name: "impatient_client_2", version: "1" }, { versionNegotiation });
const transport = place.startsWith("http:")
  ? new StreamableHTTPClientTransport(new URL(place))
  : new StdioClientTransport({ command: place, args, env: process.env });
await client.connect(transport);
await giveUp((name, parameters, options) => client.callTool({ name, arguments: parameters }, options), how);
await client.close();
