// run() and createAgent() accept the settings of createRuntime().
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import {
  createAgent,
  type CreateAgentOptions,
  createRuntime,
  defineAgent,
  defineTool,
  localQueues,
  memoryStores,
  run,
  type RunOptions,
  type RuntimeOptions,
  textOf,
} from "../../src/index.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import { calling } from "../support/turn-probes.ts";

const model = scriptedModel({ text: "Noted.", usage: { inputTokens: 1_000_000, outputTokens: 0 } });
const desk = defineAgent({ name: "desk", model });
const prices = { scripted: { inputPerMillion: 2, outputPerMillion: 8 } };

describe("prices", () => {
  it("run() computes the cost with them", async () => {
    expect((await run(desk, "go", { prices })).cost).toBe(2);
  });

  it("createAgent() computes the cost with them", async () => {
    const agent = await createAgent({ model, prices });
    await agent.start();
    expect((await agent.executeTurn("go").result).cost).toBe(2);
    await agent.runtime.shutdown();
  });
});

describe("clock", () => {
  const clock = createFakeClock(5_000);

  it("run() stores its times", async () => {
    const stamps: number[] = [];
    await run(desk, "go", { clock, onEvent: ({ at }) => void stamps.push(at) });
    expect([...new Set(stamps)]).toEqual([5_000]);
  });

  it("createAgent() stores its times", async () => {
    const agent = await createAgent({ model, clock });
    expect(agent.createdAt).toBe(5_000);
    await agent.runtime.shutdown();
  });
});

describe("mayDecide and resolveAuth", () => {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({}),
    needsApproval: true,
    execute: () => "paid",
  });
  const clerk = defineAgent({ name: "clerk", model: scriptedModel([calling("pay"), "Done."]), tools: [pay] });

  it("run() calls `mayDecide` for a decision", async () => {
    const asked: unknown[] = [];
    const deciding = run(clerk, "go", {
      mayDecide: ({ by }) => {
        asked.push(by);
        return by === "ada";
      },
      decide: () => ({ verdict: "approved", by: "bela" }),
    });
    await expect(deciding).rejects.toMatchObject({ code: "policy_refused" });
    expect(asked).toEqual(["bela"]);
  });

  it("createAgent() gets the credentials of a turn from `resolveAuth`", async () => {
    const whoami = defineTool({
      name: "whoami",
      description: "Says who the turn is for.",
      parameters: z.object({}),
      auth: "required",
      execute: (_, { auth }) => `${auth?.actorId} ${JSON.stringify(auth?.credentials)}`,
    });
    const stores = memoryStores();
    const agent = await createAgent({
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === "tool" ? textOf(messages.at(-1)?.content ?? "") : calling("whoami"),
      ),
      tools: [whoami],
      stores,
      queues: localQueues(),
      resolveAuth: ({ actorId }) => ({ actorId, credentials: { key: "k" } }),
    });
    await agent.start();
    expect((await agent.executeTurn("go", { auth: { actorId: "ada" } }).result).text).toBe('ada {"key":"k"}');
    await agent.runtime.shutdown();
  });
});

it("only createRuntime() accepts a role", async () => {
  await expect(run(desk, "go", { role: "worker" } as RunOptions)).rejects.toThrow(
    "did you mean createRuntime({ role })?",
  );
  await expect(createAgent({ model, work: {} } as CreateAgentOptions)).rejects.toThrow(
    "did you mean createRuntime({ work })?",
  );
});

it("the error for a wrong setting names the setting and the function", async () => {
  const wrong = { tenant: 7 as unknown as string };
  await expect(run(desk, "go", wrong)).rejects.toThrow("run(): tenant");
  await expect(createAgent({ model, ...wrong })).rejects.toThrow("createAgent(): tenant");
  await expect(createRuntime({ agents: [desk], ...wrong })).rejects.toThrow("createRuntime(): tenant");
});

it("the types share one list of settings", () => {
  type Settings = Omit<RuntimeOptions, "role" | "work" | "retention" | "agents">;
  expectTypeOf<Pick<RunOptions, keyof Settings>>().toEqualTypeOf<Settings>();
  expectTypeOf<Pick<CreateAgentOptions, keyof Settings>>().toEqualTypeOf<Settings>();
});

it("the types refuse work for a client", () => {
  const agents = [desk];
  expectTypeOf(createRuntime<"client">)
    .parameter(0)
    .not.toExtend<{ readonly work: { readonly agents: number } }>();
  // @ts-expect-error -- a client accepts no `work`
  const client = () => createRuntime({ agents, role: "client", work: { agents: 2 } });
  const worker = () => createRuntime({ agents, role: "worker", work: { agents: 2 } });
  const all = () => createRuntime({ agents, work: { agents: 2 } });
  // @ts-expect-error -- unknown role
  const boss = () => createRuntime({ agents, role: "boss" });
  const given: Omit<RuntimeOptions, "agents"> = {};
  const passedOn = () => createRuntime({ agents, ...given });
  expect([client, worker, all, boss, passedOn]).toHaveLength(5);
});
