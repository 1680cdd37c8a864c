// Writes two servers into the files of the clients named on the command line, as the library add-mcp does it.
import { upsertServer } from "add-mcp";

const servers = {
  local: { command: "uvx", args: ["mcp-server-time", "--local-timezone", "UTC"], env: { KIND: "v" } },
  remote: { type: "http", url: "https://example.test/mcp", headers: { Authorization: "Bearer T" } },
};
for (const client of process.argv.slice(2)) {
  for (const [name, entry] of Object.entries(servers)) {
    const { success, path, error } = upsertServer(client, name, entry, { local: false });
    console.log(JSON.stringify({ client, name, success, path, error }));
  }
}
