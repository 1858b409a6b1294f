import { expect, it } from "vitest";
import { agentSchema } from "../../../src/server/api/agent-json.ts";
import { errorSchema } from "../../../src/server/api/answers.ts";
import { requestSchema, acceptedTurnSchema } from "../../../src/server/api/turn-json.ts";
import { framesOf, served, type Served } from "./served.ts";

const key = { "idempotency-key": "order-7" };

async function createAgent({ ask }: Served, body: object = {}, headers = {}): Promise<Response> {
  return await ask("POST /api/agents", { body: { definition: "clerk", ...body }, headers });
}

async function idOf(response: Response): Promise<string> {
  return agentSchema.parse(await response.json()).agentId;
}

it("fifty equal requests with one key start one turn, and get the same answer", async () => {
  const here = await served();
  const place = `POST /api/agents/${await idOf(await createAgent(here))}/turns`;
  const turn = { body: { input: "remove" }, headers: key };
  const answers = await Promise.all(Array.from({ length: 50 }, () => here.ask(place, turn)));
  const bodies = await Promise.all(answers.map(async (one) => acceptedTurnSchema.parse(await one.json())));
  expect(new Set(bodies.map(({ turnId }) => turnId))).toHaveLength(1);
  expect(answers.filter(({ headers }) => headers.get("idempotency-replayed") === null)).toHaveLength(1);
  expect(answers.every(({ status }) => status === 202)).toBe(true);
  const other = await here.ask(place, { body: { input: "chat" }, headers: key });
  expect([other.status, errorSchema.parse(await other.json()).error.code]).toEqual([422, "turn_conflict"]);
});

it("a stream that is requested again with its key and the last id continues", async () => {
  const here = await served();
  const place = `POST /api/agents/${await idOf(await createAgent(here))}/turns`;
  const read = async (lastId?: string): Promise<string[]> => {
    const headers = {
      ...key,
      accept: "text/event-stream",
      ...(lastId === undefined ? {} : { "last-event-id": lastId }),
    };
    const ids: string[] = [];
    for await (const { id } of framesOf(await here.ask(place, { body: { input: "delegate" }, headers })))
      ids.push(id ?? "");
    return ids.filter((id) => id !== "");
  };
  const whole = await read();
  expect(whole.length).toBeGreaterThan(10);
  expect(await read()).toEqual(whole);
  for (const [index, id] of whole.entries()) expect(await read(id)).toEqual(whole.slice(index + 1));
});

it("a key creates one agent, and another request with it is refused", async () => {
  const here = await served();
  const body = { sessionId: "s", metadata: { floor: 2 }, budget: { maxSteps: 3 } };
  const answers = await Promise.all(Array.from({ length: 8 }, () => createAgent(here, body, key)));
  expect(new Set(await Promise.all(answers.map(idOf)))).toHaveLength(1);
  expect(answers.map(({ status }) => status).includes(201)).toBe(true);
  const repeated = agentSchema.parse(await (await createAgent(here, body, key)).json());
  expect(repeated.metadata).toEqual({ floor: 2 });
  for (const other of [{ sessionId: "t" }, { metadata: {} }, { budget: { maxSteps: 4 } }, { definition: "reader" }]) {
    const refused = await createAgent(here, { ...body, ...other }, key);
    expect([refused.status, errorSchema.parse(await refused.json()).error.code]).toEqual([422, "key_reused"]);
  }
});

it.each(["", "two words", "ü".repeat(2), "x".repeat(256)])("the key %j is refused", async (value) => {
  const here = await served();
  const response = await createAgent(
    here,
    {},
    { "idempotency-key": encodeURI(value) === value ? value : "%00 \u00fc" },
  );
  expect(response.status).toBe(400);
});

it("a decision that is repeated with its key gets the same answer, and a different one is refused", async () => {
  const here = await served();
  const agentId = await idOf(await createAgent(here));
  await here.ask(`POST /api/agents/${agentId}/turns`, { body: { input: "ask" }, headers: { prefer: "wait=30" } });
  const place = `POST /api/requests/${agentId}.1:1:0:1`;
  const decide = (result: string, headers: Record<string, string> = key) =>
    here.ask(place, { body: { verdict: "answered", result }, headers });
  const [first, second] = [await decide("tea"), await decide("tea")];
  const answers = await Promise.all([first, second].map(async (one) => requestSchema.parse(await one.json())));
  expect([first.status, second.status]).toEqual([200, 200]);
  expect([first, second].map(({ headers }) => headers.get("idempotency-replayed"))).toEqual([null, "true"]);
  expect(answers[1]).toEqual(answers[0]);
  expect(answers[0]).toMatchObject({ status: "decided", decision: { result: { text: "tea" } } });
  const refused = await decide("coffee");
  expect([refused.status, errorSchema.parse(await refused.json()).error.code]).toEqual([422, "key_reused"]);
  expect((await decide("tea", {})).status).toBe(409);
});
