// The client of the AI SDK, which is an implementation of its own.
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";

import { arrive, place } from "./story.mjs";

export async function connect() {
  const { url, token, session, command } = place;
  const client = await createMCPClient({
    transport:
      place.transport === "stdio"
        ? new Experimental_StdioMCPTransport({
            command: command[0],
            args: command.slice(1),
            env: { ...process.env, SPAWNLOG_TOKEN: token },
          })
        : { type: "http", url, headers: { Authorization: `Bearer ${token}`, "Spawnlog-Session": session } },
  });
  const tools = await client.tools();
  return {
    names: async () => (await client.listTools()).tools.map((one) => one.name),
    call: async (name, args, abortSignal) => {
      const options = { toolCallId: "1", messages: [], abortSignal };
      return (await tools[name].execute(args, options)).structuredContent;
    },
    read: async (uri) => (await client.readResource({ uri })).contents[0].text,
    close: () => client.close(),
  };
}

await arrive(connect);
