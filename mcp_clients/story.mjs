// What each client does: list, spawn, wait, read, be refused, be cut off and come back. Says what it
// saw as one line of JSON.
export const place = JSON.parse(process.env.PLACE);

export async function arrive(connect) {
  const saw = {};
  let client = await connect();
  saw.tools = await client.names();
  const spawned = await client.call("sessions_spawn", { task: "look" });
  saw.spawned = spawned.status;
  const progress = [];
  const waited = await client.call("subagents_wait", { timeoutSeconds: 30 }, undefined, (one) =>
    progress.push(one.progress),
  );
  saw.waited = waited.status;
  saw.reported = waited.done[0].announcement.text;
  saw.transcript = await client.read(`spawnlog://runs/${spawned.runId}/transcript`);
  saw.refused = (await client.call("sessions_spawn", { task: "x", agentId: "ghost" })).status;
  saw.unknown = await client.call("sessions_send", { message: "x", label: "nobody" });
  const held = await client.call("sessions_spawn", { task: "hold", agentId: "slow" });
  const giveUp = new AbortController();
  const waiting = client.call("subagents_wait", { timeoutSeconds: 600 }, giveUp.signal).then(
    () => "answered",
    () => "given up",
  );
  await client.call("session_status", {});
  giveUp.abort();
  saw.cutOff = await waiting;
  await client.close();
  client = await connect();
  const listed = await client.call("subagents", { action: "list" });
  saw.back = listed.active.map((one) => one.runId === held.runId);
  saw.stopped = (await client.call("subagents", { action: "stop", target: held.runId })).status;
  // What the first wait gave was read: only what came behind it is given now.
  const last = await client.call("subagents_wait", { timeoutSeconds: 30, after: waited.after });
  saw.last = last.done.map((one) => one.run.outcome);
  await client.close();
  console.log(JSON.stringify(saw));
}
