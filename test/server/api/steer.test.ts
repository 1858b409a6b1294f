import { expect, it } from "vitest";
import { agentSchema } from "../../../src/server/api/agent-json.ts";
import { steerAnswerSchema } from "../../../src/server/api/turn-json.ts";
import { checkedAsk } from "./checked-ask.ts";
import { bob, served } from "./served.ts";

const wait = { headers: { prefer: "wait=30" } };

async function waiting() {
  const { ask } = await checkedAsk(await served());
  const { agentId } = (await ask("POST /api/agents", { body: { definition: "clerk" } })).as(agentSchema);
  await ask(`POST /api/agents/${agentId}/turns`, { body: { input: "remove" }, ...wait });
  return { ask, agentId, place: `POST /api/agents/${agentId}` };
}

it("an input for the open turn is delivered, once for each key", async () => {
  const { ask, agentId, place } = await waiting();
  const headers = { "idempotency-key": "note-1" };
  const answer = { status: "delivered", turnId: `${agentId}#1`, agentId, number: 1, step: 2 };
  for (const path of [`${place}/steer`, `${place}/steer`, `${place}/turns/1/steer`]) {
    expect((await ask(path, { body: { input: "chat" }, headers })).as(steerAnswerSchema)).toEqual(answer);
  }
  const other = await ask(`${place}/steer`, { body: { input: "save" }, headers });
  expect([other.status, other.body]).toMatchObject([422, { error: { code: "turn_conflict" } }]);
  const turn = await ask(`${place}/turns`, { body: { input: "chat", ifBusy: "steer" } });
  expect([turn.status, turn.body]).toMatchObject([202, { number: 1 }]);
  await ask(`${place}/turns/1/abort`, { body: {} });
  await ask(`GET /api/agents/${agentId}/turns/1`, wait);
  const { items } = (await ask(`GET /api/agents/${agentId}/messages`)).body as { items: { content: unknown }[] };
  // One under each route's key, and the turn's.
  expect(items.filter(({ content }) => content === "chat")).toHaveLength(3);
});

it("after the turn's end an input starts the next turn", async () => {
  const { ask, agentId, place } = await waiting();
  await ask(`${place}/turns/1/abort`, { body: {} });
  await ask(`GET /api/agents/${agentId}/turns/1`, wait);
  const answer = await ask(`${place}/turns/1/steer`, { body: { input: "chat" } });
  expect([answer.status, answer.body]).toEqual([200, { status: "queued", turnId: `${agentId}#2`, agentId, number: 2 }]);
  expect((await ask(`GET /api/agents/${agentId}/turns/2`, wait)).body).toMatchObject({ status: "completed" });
});

it("wrong inputs and other callers are refused", async () => {
  const { ask, place } = await waiting();
  for (const body of [{}, { input: null }, { input: [] }, { input: "chat", budget: { maxSteps: 1 } }]) {
    expect((await ask(`${place}/steer`, { body })).status, JSON.stringify(body)).toBe(400);
  }
  expect((await ask(`${place}/steer`, { body: { input: "chat" }, token: bob })).status).toBe(404);
  expect((await ask(`${place}/turns/1/steer`, { body: { input: "chat" }, token: bob })).status).toBe(404);
  expect((await ask(`${place}/turns/9/steer`, { body: { input: "chat" } })).status).toBe(404);
});
