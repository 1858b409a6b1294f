import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentRequest,
  createRuntime,
  defineAgent,
  defineTool,
  type Runtime,
  type RuntimeOptions,
  type Stores,
} from "../../src/index.ts";
import { runtimeActor, storeActor } from "../../src/inspector/feed/act.ts";
import { Feed } from "../../src/inspector/feed/feed.ts";
import { failureSchema } from "../../src/inspector/feed/wire.ts";
import { type FeedServer, serveFeed } from "../../src/inspector/start-inspector.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { amount } from "../support/full.ts";
import { type SharedStores, storesNames, sharedStoresOf } from "./feed-fixtures.ts";
import { decisionPath, get, post, type Posted } from "./http-client.ts";

const ends: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const CALLS_AT_A_TIME = 50;

interface Till {
  readonly runtime: Runtime;
  readonly stores: Stores;
  /** How often the tool ran, by the bill it paid. */
  readonly paid: Map<string, number>;
  readonly result: Promise<string>;
}

/** A clerk who pays this many bills, each after an approval. */
async function tillOn(stores: Stores, bills: number, options: Partial<RuntimeOptions> = {}): Promise<Till> {
  const paid = new Map<string, number>();
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({ bill: z.string(), lines: z.array(z.object({ amount: z.number() })).min(1) }),
    effect: "once",
    needsApproval: true,
    execute: ({ bill }) => {
      paid.set(bill, (paid.get(bill) ?? 0) + 1);
      return "paid";
    },
  });
  const clerk = defineAgent({
    name: "clerk",
    tools: [pay],
    budget: { maxSteps: 1_000 },
    model: scriptedModel(({ messages }) => {
      const done = messages.filter(({ role }) => role === "tool").length;
      const toolCalls = Array.from({ length: Math.min(CALLS_AT_A_TIME, bills - done) }, (_, index) => ({
        name: "pay",
        arguments: { bill: `bill ${done + index}`, lines: [{ amount: 5 }] },
      }));
      return toolCalls.length === 0 ? "done" : { toolCalls };
    }),
  });
  const runtime = await createRuntime({ agents: [clerk], stores, ...options });
  ends.push(() => runtime.shutdown());
  const agent = await runtime.agent("clerk", { agentId: "till" });
  await agent.start();
  const result = agent.executeTurn("go").result.then(({ text }) => text);
  // Some tests leave the turn open.
  result.catch(() => undefined);
  return { runtime, stores, paid, result };
}

async function served(feed: Feed): Promise<FeedServer> {
  const server = await serveFeed(feed, { mayAct: true });
  ends.push(() => server.close());
  return server;
}

/** Two pages: one of the process that runs the agents, one of another process with the same stores. */
async function twoPages(place: SharedStores, { runtime, stores }: Till): Promise<readonly [FeedServer, FeedServer]> {
  const { tenant } = runtime;
  const inside = new Feed();
  inside.add({ stores, tenant, runtime, actor: runtimeActor(runtime, "ann") });
  const elsewhere = place.open();
  if (elsewhere !== stores) ends.push(() => elsewhere.close());
  const notify = elsewhere === stores ? (ids: readonly string[]) => void ids.map((id) => runtime.find(id)) : undefined;
  const outside = new Feed();
  outside.add({ stores: elsewhere, tenant, actor: storeActor({ stores: elsewhere, tenant, by: "bob", notify }) });
  return [await served(inside), await served(outside)];
}

async function openRequests(server: FeedServer): Promise<readonly AgentRequest[]> {
  for (;;) {
    const { items } = await get<{ items: AgentRequest[] }>(server, "/api/runs/till/requests?status=open");
    if (items.length > 0) return items;
  }
}

describe.each(storesNames)("decisions over HTTP, %s", (name) => {
  const newPlace = sharedStoresOf(name);

  it("S15: of two pages that decide at once one wins, the other receives the winner's decision, and nothing runs twice", async () => {
    const bills = name === "memory" ? amount(1_000, 20) : amount(200, 10);
    const place = newPlace();
    const till = await tillOn(place.open(), bills);
    const pages = await twoPages(place, till);
    const names = ["ann", "bob"];
    let state = 19;
    const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
    const approved = new Set<string>();
    const wins = [0, 0];
    for (let decided = 0; decided < bills; ) {
      for (const { requestId, argumentsHash, arguments: args } of await openRequests(pages[0])) {
        const order = random() < 0.5 ? [0, 1] : [1, 0];
        const verdicts = [0, 1].map(() => (random() < 0.6 ? "approved" : "rejected"));
        const posted: Posted[] = [];
        await Promise.all(
          order.map(async (page) => {
            const body = { verdict: verdicts[page], argumentsHash };
            posted[page] = await post(pages[page] as FeedServer, decisionPath(requestId), body);
          }),
        );
        const winner = posted.findIndex(({ status }) => status === 204);
        const loser = 1 - winner;
        expect(new Set(posted.map(({ status }) => status))).toEqual(new Set([204, 409]));
        wins[winner] = (wins[winner] ?? 0) + 1;
        const { error } = failureSchema.parse(posted[loser]?.answer);
        expect(error).toMatchObject({ code: "request_conflict", request: { requestId, status: "decided" } });
        expect(error.request?.decision).toMatchObject({ verdict: verdicts[winner], by: names[winner] });
        if (verdicts[winner] === "approved") approved.add((args as { bill: string }).bill);
        decided += 1;
      }
    }
    expect(await till.result).toBe("done");
    expect([...till.paid.keys()].toSorted()).toEqual([...approved].toSorted());
    expect([...till.paid.values()].every((times) => times === 1)).toBe(true);
    // Over a slow store the page that reads the request twice has more latency.
    expect(Math.min(...wins)).toBeGreaterThanOrEqual(name === "memory" ? 1 : 0);
  });
});

const mayDecide: RuntimeOptions["mayDecide"] = ({ by }) => by === "cleo";

describe("a decision", () => {
  const newPlace = sharedStoresOf("memory");

  it("about arguments other than the requested ones is refused and returns the request", async () => {
    const place = newPlace();
    const till = await tillOn(place.open(), 1);
    const pages = await twoPages(place, till);
    const [request] = await openRequests(pages[0]);
    if (!request) throw new Error("there is no request");
    for (const page of pages) {
      const { status, error } = await post(page, decisionPath(request.requestId), {
        verdict: "approved",
        argumentsHash: "0000000000000000",
      });
      expect([status, error?.code, error?.request?.status]).toEqual([409, "request_conflict", "open"]);
      expect(error?.request).toMatchObject({ argumentsHash: request.argumentsHash, arguments: request.arguments });
    }
    expect(till.paid.size).toBe(0);
    const { requestId, argumentsHash } = request;
    expect((await post(pages[0], decisionPath(requestId), { verdict: "rejected", argumentsHash })).status).toBe(204);
    expect(await till.result).toBe("done");
    expect(till.paid.size).toBe(0);
  });

  it("with invalid arguments names each field, and valid arguments are used", async () => {
    const place = newPlace();
    const till = await tillOn(place.open(), 1);
    const [page] = await twoPages(place, till);
    const [request] = await openRequests(page);
    const path = decisionPath(request?.requestId ?? "");
    const wrong = { bill: 7, lines: [{ amount: 1 }, { amount: "two" }] };
    const { status, error } = await post(page, path, { verdict: "edited", arguments: wrong });
    expect([status, error?.code]).toEqual([400, "invalid_input"]);
    expect(error?.issues).toEqual([
      { path: "bill", message: "Invalid input: received number (expected string)" },
      { path: "lines[1].amount", message: "Invalid input: received string (expected number)" },
    ]);
    const missing = await post(page, path, { verdict: "edited" });
    expect([missing.status, missing.error?.issues]).toEqual([400, undefined]);
    expect((await post(page, path, { verdict: "maybe" })).error?.issues).toMatchObject([{ path: "verdict" }]);
    expect((await post(page, path, { verdict: "answered", result: "x" })).status).toBe(400);
    expect((await openRequests(page)).length).toBe(1);
    expect(
      (await post(page, path, { verdict: "edited", arguments: { bill: "other", lines: [{ amount: 1 }] } })).status,
    ).toBe(204);
    expect(await till.result).toBe("done");
    expect([...till.paid]).toEqual([["other", 1]]);
  });

  it("on a guarded request needs the rule, which has the final say", async () => {
    const place = newPlace();
    const till = await tillOn(place.open(), 1, { mayDecide });
    const pages = await twoPages(place, till);
    const { stores, runtime } = till;
    const { tenant } = runtime;
    const feed = new Feed();
    const notify = (ids: readonly string[]): void => void ids.map((id) => runtime.find(id));
    feed.add({ stores, tenant, actor: storeActor({ stores, tenant, by: "cleo", mayDecide, notify }) });
    const withRule = await served(feed);
    const [request] = await openRequests(pages[0]);
    const path = decisionPath(request?.requestId ?? "");
    expect(request?.isGuarded).toBe(true);
    const [refused, ruleless] = [
      await post(pages[0], path, { verdict: "approved" }),
      await post(pages[1], path, { verdict: "approved" }),
    ];
    expect([refused.status, refused.error?.code]).toEqual([422, "policy_refused"]);
    expect([ruleless.status, ruleless.error?.code]).toEqual([422, "unsupported"]);
    expect(ruleless.error?.message).toContain("--agents FILE");
    expect(till.paid.size).toBe(0);
    expect((await post(withRule, path, { verdict: "approved" })).status).toBe(204);
    expect(await till.result).toBe("done");
    expect(till.paid.size).toBe(1);
  });

  it("on a missing request is not found, and without the act token nothing is done", async () => {
    const place = newPlace();
    const till = await tillOn(place.open(), 1);
    const [page, other] = await twoPages(place, till);
    for (const id of ["nothing", "till#1:1:0:9", "nobody#1:1:0:1", "%", "a#b:c"]) {
      expect((await post(page, decisionPath(id), { verdict: "approved" })).status).toBe(404);
    }
    const [request] = await openRequests(page);
    const acts: readonly (readonly [string, object])[] = [
      [decisionPath(request?.requestId ?? ""), { verdict: "approved" }],
      ["/api/agents/till/pause", {}],
      ["/api/agents/till/resume", {}],
      ["/api/agents/till/abort", { reason: "x" }],
      ["/api/agents", { definition: "clerk", agentId: "second" }],
      ["/api/agents/till/turns", { key: "k", text: "go", ifBusy: "queue" }],
    ];
    const before = await till.stores.readTree("default", "till", 0, 1_000);
    for (const [path, body] of acts) {
      for (const server of [page, other]) {
        const { status, answer } = await post(server, path, body, server.tokens.watch);
        expect([path, status, answer]).toEqual([path, 403, undefined]);
      }
    }
    expect(await till.stores.readTree("default", "till", 0, 1_000)).toEqual(before);
    expect((await till.runtime.list()).length).toBe(1);
    expect((await openRequests(page)).length).toBe(1);
  });
});

it("twenty clicks with one key are one turn, with two keys two", async () => {
  const stores = sharedStoresOf("memory")().open();
  const { runtime } = await tillOn(stores, 0);
  const feed = new Feed();
  feed.add({ stores, tenant: runtime.tenant, runtime, actor: runtimeActor(runtime, "ann") });
  const server = await served(feed);
  const clicks = Array.from({ length: 20 }, () =>
    post(server, "/api/agents/till/turns", { key: "one", text: "go", ifBusy: "queue" }),
  );
  const turns = new Set(
    (await Promise.all(clicks)).map(({ status, answer }) => `${status} ${(answer as { turnId: string }).turnId}`),
  );
  expect([...turns]).toEqual(["200 till#2"]);
  const second = await post(server, "/api/agents/till/turns", { key: "two", text: "go", ifBusy: "queue" });
  expect(second.answer).toEqual({ turnId: "till#3" });
  const made = await Promise.all(
    [1, 2].map(() => post(server, "/api/agents", { definition: "clerk", agentId: "twin" })),
  );
  expect(made.map(({ status }) => status)).toEqual([200, 200]);
  expect((await runtime.list({ rootsOnly: true })).map(({ agentId }) => agentId).toSorted()).toEqual(["till", "twin"]);
});

it("a text that is sent while a turn is open is delivered to it, once for each key, and names the step", async () => {
  const stores = sharedStoresOf("memory")().open();
  const { runtime } = await tillOn(stores, 1);
  const feed = new Feed();
  feed.add({ stores, tenant: runtime.tenant, runtime, actor: runtimeActor(runtime, "ann") });
  const server = await served(feed);
  const body = { key: "one", text: "hurry", ifBusy: "steer" };
  for (const again of [body, body]) {
    const { status, answer } = await post(server, "/api/agents/till/turns", again);
    expect([status, answer]).toEqual([200, { turnId: "till#1", step: 2 }]);
  }
  const agent = await runtime.find("till");
  await agent.turn("till#1").abort();
  await agent.turn("till#1").result;
  const later = await post(server, "/api/agents/till/turns", { ...body, key: "two" });
  expect(later.answer).toEqual({ turnId: "till#2" });
});
