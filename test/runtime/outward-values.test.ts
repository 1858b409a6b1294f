import { expect, test } from "vitest";
import type { Agent, Projections, Runtime, RuntimeOptions, TroupeEvent } from "../../src/index.ts";
import { every, rows } from "../support/full.ts";
import { deskOf, type Give, hookNames } from "../support/outward-cast.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { type Damage, vandalise } from "../support/vandal.ts";

/** Positions at which user code receives a value. */
const places = [
  ...hookNames.flatMap((name) => [`${name}: draft`, `${name}: run`]),
  "instructions",
  "compile",
  "compact",
  "model: generate",
  "model: count",
  "model: bound",
  "generate: response",
  "tool: arguments",
  "tool: run",
  "approval: arguments",
  "approval: run",
  "describe",
  "subagent: input",
  "mayDecide",
  "resolveAuth",
  "observer",
  "iterator",
  "follow",
  "overview",
  "inspect",
  "projection: messages",
  "projection: artifact",
  "projection: state",
  "result",
  "settled",
  "requests",
  "decided",
  "messages",
  "state",
  "trace",
  "artifacts",
  "artifact",
  "records",
  "status",
  "accounts",
  "stores",
  "definition",
] as const;

function projectionsOf(give: Give): Projections {
  return {
    messages: {
      append: async (_contextId, messages) => give("projection: messages", messages),
      getRecent: async () => [],
      compact: async () => undefined,
    },
    artifacts: {
      save: async (_contextId, artifact) => give("projection: artifact", artifact),
      get: async () => undefined,
      list: async () => [],
    },
    state: { save: async (_contextId, metadata) => give("projection: state", metadata), load: async () => undefined },
  };
}

function optionsOf(give: Give): Omit<RuntimeOptions, "agents" | "stores" | "clock" | "leaseMs"> {
  return {
    projections: projectionsOf(give),
    mayDecide: (attempt) => {
      give("mayDecide", attempt);
      return true;
    },
    resolveAuth: (request) => {
      const { actorId } = request;
      give("resolveAuth", request);
      return { actorId, credentials: { token: "a token of some length" } };
    },
    onInspect: (_agentId, event) =>
      "snapshot" in event && "context" in event.snapshot ? give("inspect", event.snapshot.context) : undefined,
  };
}

/** Plays two turns of one agent and passes every value that user code receives to `give`. Returns the outcome as plain JSON. */
async function played(stage: Stage, tenant: string, give: Give): Promise<unknown> {
  const prompts: string[] = [];
  const events: TroupeEvent[] = [];
  const desk = deskOf(prompts, give);
  give("definition", desk);
  const runtime = await stage.open({ agents: [desk], tenant, ...optionsOf(give) });
  runtime.subscribe((event) => give("observer", event));
  runtime.subscribe((event) => void events.push(event));
  runtime.overview.subscribe((snapshot) => give("overview", snapshot.context));
  const agent = await runtime.agent("desk", { agentId: "desk", metadata: { team: { members: ["x", "y"] } } });
  await agent.start();
  const first = agent.executeTurn("first", { auth: { actorId: "ann" } });
  const iterated = iterate(first, "iterator", give);
  const rest = await first.settled;
  give("settled", rest);
  const requests = await runtime.requests();
  give("requests", requests);
  give("requests", await agent.requests());
  const [request] = await runtime.requests();
  give("decided", await runtime.decide(request?.requestId ?? "none", { verdict: "approved", by: "ann" }));
  give("result", await first.result);
  await iterated;
  await looked(runtime, agent, give);
  const second = await agent.executeTurn("second").result;
  await runtime.projected("desk");
  const told = JSON.stringify({
    prompts,
    events: byAgent(events),
    second,
    first: await first.result,
    ...(await read(runtime, agent)),
  });
  await runtime.shutdown();
  const made = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
  // Two trees in one SQLite file share their cursors.
  const comparable = told.replaceAll(`"${tenant}"`, '"tenant"').replaceAll(made, "made");
  return JSON.parse(comparable, (key, value: unknown) => (["cursor", "after"].includes(key) ? null : value));
}

/** Sorts by agent: the interleaving of several agents' events depends on timing. */
function byAgent<Of extends { readonly agentId: string }>(all: readonly Of[]): readonly Of[] {
  return all.toSorted((one, other) => (one.agentId < other.agentId ? -1 : Number(one.agentId > other.agentId)));
}

async function iterate(events: AsyncIterable<TroupeEvent>, place: string, give: Give): Promise<void> {
  for await (const event of events) give(place, event);
}

/** Everything that a program can read. */
async function looked(runtime: Runtime, agent: Agent, give: Give): Promise<void> {
  for (const [place, values] of Object.entries(await read(runtime, agent))) give(place, values);
  const controller = new AbortController();
  for await (const event of runtime.follow("desk", { signal: controller.signal })) {
    const { type } = event;
    give("follow", event);
    if (type === "turn.completed") controller.abort();
  }
}

async function read({ stores, tenant, ...runtime }: Runtime, agent: Agent): Promise<Record<string, unknown>> {
  const key = { tenant, agentId: "desk" };
  const known = await agent.getArtifacts();
  return {
    messages: await agent.getMessages(),
    state: await agent.getState(),
    trace: await agent.getTrace(),
    artifacts: known,
    artifact: await agent.getArtifact("notes"),
    records: await runtime.list(),
    status: agent.state,
    accounts: await runtime.accounts("desk"),
    stores: [
      await stores.readAgent(key),
      await stores.messages(key),
      (await stores.readJournal(key, 1)).flatMap(({ entries }) => entries),
      byAgent(await stores.readTree(tenant, "desk", 0, 1_000)).flatMap(({ entries }) => entries),
      await stores.requests({ tenant }),
    ],
  };
}

function harm(damage: Damage, chosen: (place: string) => boolean): Give {
  return (place, value) => (chosen(place) ? vandalise(value, damage) : undefined);
}

describeRuntimes(
  "a value passed to user code",
  (stage) => {
    test.each(rows(places, every(10)))("is a copy or read-only: %s", async (place) => {
      const damage: Damage = { refusals: new Set(), changes: 0 };
      const calm = await played(stage(), "calm", () => undefined);
      const rough = await played(
        stage(),
        "rough",
        harm(damage, (one) => one === place),
      );
      expect(rough).toEqual(calm);
      expect(damage.refusals.size + damage.changes).toBeGreaterThan(0);
    });
  },
  ["memory"],
);

describeRuntimes("all values passed to user code", (stage) => {
  test("are copies or read-only", async () => {
    const damage: Damage = { refusals: new Set(), changes: 0 };
    const calm = await played(stage(), "calm", () => undefined);
    expect(
      await played(
        stage(),
        "rough",
        harm(damage, () => true),
      ),
    ).toEqual(calm);
  });
});
