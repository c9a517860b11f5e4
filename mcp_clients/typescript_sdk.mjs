// The protocol's own client in TypeScript, by the transport that is asked for.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { arrive, place } from "./story.mjs";

export async function connect() {
  const client = new Client({ name: "typescript-sdk", version: "1" });
  const { url, token, session, command } = place;
  await client.connect(
    place.transport === "stdio"
      ? new StdioClientTransport({
          command: command[0],
          args: command.slice(1),
          env: { ...process.env, SPAWNLOG_TOKEN: token },
        })
      : new StreamableHTTPClientTransport(new URL(url), {
          requestInit: { headers: { Authorization: `Bearer ${token}`, "Spawnlog-Session": session } },
        }),
  );
  return {
    names: async () => (await client.listTools()).tools.map((one) => one.name),
    call: async (name, args, signal, onprogress) =>
      (await client.callTool({ name, arguments: args }, undefined, { signal, onprogress }))
        .structuredContent,
    read: async (uri) => (await client.readResource({ uri })).contents[0].text,
    close: () => client.close(),
  };
}

await arrive(connect);
