import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  createRuntime,
  defineAgent,
  defineTool,
  type Hooks,
  memoryStores,
  type Stores,
  textOf,
} from "../../src/index.ts";
import { checkUpgrade, scriptedModel } from "../../src/testing/index.ts";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";

interface Version {
  readonly prompt?: string;
  readonly tools?: readonly ("look" | "pay")[];
  readonly maxSteps?: number;
  readonly hooks?: Hooks;
  readonly clerkName?: string;
}

function deskAgents({
  prompt = "Be brief.",
  tools = ["look", "pay"],
  maxSteps = 5,
  hooks,
  clerkName = "clerk",
}: Version) {
  const all = {
    look: defineTool({ name: "look", description: "Looks.", parameters: z.object({}), execute: () => "seen" }),
    pay: defineTool({
      name: "pay",
      description: "Pays.",
      parameters: z.object({}),
      needsApproval: true,
      execute: () => "paid",
    }),
  };
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    return last?.role === "user" ? { toolCalls: [{ name: textOf(last.content) }] } : "done";
  });
  return [
    defineAgent({
      name: clerkName,
      model,
      instructions: prompt,
      tools: tools.map((name) => all[name]),
      budget: { maxSteps },
      ...(hooks ? { hooks } : {}),
    }),
    defineAgent({ name: "quiet", model: scriptedModel("quiet") }),
  ];
}

/** Two runs of the clerk that have ended, one that waits for an approval, and one of the quiet agent. */
async function recorded(version: Version = {}): Promise<Stores> {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: deskAgents(version), stores });
  for (const [agentId, name, input] of [
    ["one", "clerk", "look"],
    ["two", "clerk", "look"],
    ["open", "clerk", "pay"],
    ["three", "quiet", "look"],
  ] as const) {
    const agent = await runtime.agent(name, { agentId });
    await agent.start();
    await agent.executeTurn(input).settled;
  }
  await runtime.shutdown();
  return stores;
}

describe("checkUpgrade()", () => {
  it("finds nothing for the same definitions, and the open turn goes on", async () => {
    expect(await checkUpgrade(await recorded(), { agents: deskAgents({}) })).toEqual({
      runs: 4,
      same: 4,
      different: 0,
      differences: [],
      unreadable: [],
      openTurns: [
        {
          rootAgentId: "open",
          agentId: "open",
          agentName: "clerk",
          turnId: "open#1",
          verdict: "goes on",
          tools: [],
          isChanged: false,
        },
      ],
      changed: {},
    });
  });

  it("counts the runs that ask something else, by cause and step, with one sample", async () => {
    const report = await checkUpgrade(await recorded(), { agents: deskAgents({ prompt: "Be long." }) });
    expect(report).toMatchObject({ runs: 4, same: 1, different: 3 });
    expect(report.differences).toMatchObject([
      {
        part: "system prompt",
        agentName: "clerk",
        runs: 3,
        bySteps: { 1: 3 },
        sample: { diff: "- Be brief.\n+ Be long." },
      },
    ]);
    expect(report.openTurns).toMatchObject([{ verdict: "goes on", isChanged: true }]);
  });

  it("names the tools that open calls have lost, and agents that are missing", async () => {
    const stores = await recorded();
    const less = await checkUpgrade(stores, { agents: deskAgents({ tools: ["look"] }) });
    expect(less.openTurns).toMatchObject([{ verdict: "lacks a tool", tools: ["pay"], isChanged: true }]);
    expect(less.differences).toMatchObject([{ part: "tools", runs: 3 }]);
    const none = await checkUpgrade(stores, { agents: deskAgents({ clerkName: "other" }) });
    expect(none.openTurns).toMatchObject([{ verdict: "lacks its agent", tools: [] }]);
    expect(none.differences).toMatchObject([{ part: "agent", agentName: "clerk", runs: 3 }]);
  });

  it("names changes that alter no request", async () => {
    const report = await checkUpgrade(await recorded(), { agents: deskAgents({ maxSteps: 9 }) });
    expect(report).toMatchObject({ same: 4, changed: { "clerk: limits": 3 } });
  });

  it("runs no hooks unless asked, calls no model and changes nothing in the stores", async () => {
    const stores = await recorded({ hooks: { beforeLlm: () => undefined } });
    const before = JSON.stringify(await stores.exportTree("default", "one"));
    let runs = 0;
    const hooks: Hooks = { beforeLlm: () => void (runs += 1) };
    expect(await checkUpgrade(stores, { agents: deskAgents({ hooks }) })).toMatchObject({ same: 4 });
    expect(runs).toBe(0);
    expect(await checkUpgrade(stores, { agents: deskAgents({ hooks }), hooks: "run" })).toMatchObject({ same: 4 });
    expect(runs).toBe(5);
    expect(JSON.stringify(await stores.exportTree("default", "one"))).toBe(before);
  });

  it("checks the newest runs, and reports its progress", async () => {
    const seen: string[] = [];
    const onProgress = ({ done, of }: { done: number; of: number }) => void seen.push(`${done}/${of}`);
    const report = await checkUpgrade(await recorded(), { agents: deskAgents({}), last: 2, onProgress });
    expect(report.runs).toBe(2);
    expect(seen).toEqual(["1/2", "2/2"]);
  });

  it("goes on after a run that cannot be read", async () => {
    const stores = await recorded();
    const broken = new Proxy(stores, {
      get: (all, name) =>
        name === "exportTree"
          ? (tenant: string, id: string) =>
              id === "two" ? Promise.reject(new Error("it is damaged")) : all.exportTree(tenant, id)
          : Reflect.get(all, name),
    });
    expect(await checkUpgrade(broken, { agents: deskAgents({}) })).toMatchObject({
      runs: 4,
      same: 3,
      different: 0,
      unreadable: [{ rootAgentId: "two", reason: "it is damaged" }],
    });
  });

  it.each([
    ["agents", (value: unknown) => Array.isArray(value) && value.length === 0],
    ["hooks", () => false],
    ["timeoutMs", Number.isInteger],
    ["last", Number.isInteger],
    ["tenant", (value: unknown) => typeof value === "string"],
    ["onProgress", (value: unknown) => typeof value === "function"],
  ] as const)("refuses a wrong %s", async (name, isRight) => {
    const stores = memoryStores();
    const taken: unknown[] = [];
    for (const value of [...classicValues(), ...anyValues(20)]) {
      const options = { agents: deskAgents({}), [name]: value } as never;
      if (await isTaken(name, () => checkUpgrade(stores, options))) taken.push(value);
    }
    expect(taken.filter((value) => value !== undefined && !isRight(value))).toEqual([]);
  });

  it("refuses stores that are none", async () => {
    for (const value of classicValues()) {
      expect(await isTaken("stores", () => checkUpgrade(value as never, { agents: deskAgents({}) }))).toBe(false);
    }
  });
});
