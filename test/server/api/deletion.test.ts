import { expect, it } from "vitest";
import { createClient } from "../../../src/client/index.ts";
import { ada, bob, served } from "./served.ts";

it("the owner deletes an agent: it is gone for its readers, and its key cannot be used again", async () => {
  const { ask, runtime } = await served();
  const body = { definition: "clerk", key: "desk" };
  const { agentId } = (await (await ask("POST /api/agents", { body })).json()) as { agentId: string };
  await ask(`POST /api/agents/${agentId}/turns`, { body: { input: "ask" }, headers: { prefer: "wait=30" } });

  expect((await ask(`DELETE /api/agents/${agentId}`, { token: bob })).status).toBe(404);
  const busy = await ask(`DELETE /api/agents/${agentId}`);
  expect(busy.status).toBe(409);
  expect(await busy.json()).toMatchObject({ error: { code: "agent_busy" } });

  const deleted = await ask(`DELETE /api/agents/${agentId}?abort=true`);
  expect(deleted.status).toBe(200);
  expect(await deleted.json()).toMatchObject({ agentId, counts: { agents: 1, turns: 1, requests: 1 } });
  for (const token of [ada, bob]) {
    for (const place of [`GET /api/agents/${agentId}`, `DELETE /api/agents/${agentId}`]) {
      const gone = await ask(place, { token });
      expect(gone.status).toBe(404);
      expect(JSON.stringify(await gone.json())).not.toContain("deleted");
    }
  }
  const again = await ask("POST /api/agents", { body });
  expect(again.status).toBe(410);
  expect(await again.json()).toMatchObject({ error: { code: "agent_deleted", retryable: false } });
  expect(await runtime.list()).toEqual([]);
});

it("the client deletes an agent", async () => {
  const { server, runtime } = await served();
  const send = (async (input: Request | URL | string, init?: RequestInit) =>
    await server.fetch(new Request(input, init))) as typeof fetch;
  const client = createClient({ url: "http://127.0.0.1/", headers: { authorization: `Bearer ${ada}` }, fetch: send });
  const agent = await client.createAgent({ definition: "clerk" });
  await agent.executeTurn("chat").then((turn) => turn.settled());
  expect(await agent.delete()).toMatchObject({ agentId: agent.agentId, counts: { agents: 1, turns: 1 } });
  await expect(agent.info()).rejects.toMatchObject({ code: "not_found" });
  expect(await runtime.list()).toEqual([]);
});
