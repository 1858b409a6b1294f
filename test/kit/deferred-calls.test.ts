// Everything that holds for a call of a tool holds for a call of it through call_tool: each scene is played both ways.
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  type AgentOptions,
  createRuntime,
  defineAgent,
  defineTool,
  memoryStores,
  type RuntimeOptions,
  type SessionStub,
  subagent,
  type Tool,
  type ToolDefinition,
  type TroupeEvent,
} from "../../src/index.ts";
import { deferredTools, guard } from "../../src/kit/index.ts";
import { type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import { Feed } from "../../src/inspector/index.ts";
import { sessionRecord } from "../../src/telemetry/index.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate, eventsOfTurn } from "../support/turn-probes.ts";

const ways = ["directly", "through call_tool"] as const;
type Way = (typeof ways)[number];

const order = z.object({ id: z.string(), amount: z.number() });
type Order = z.infer<typeof order>;
const given: Order = { id: "A", amount: 5 };

/** A tool that pays. */
const payTool = (more: Partial<ToolDefinition<typeof order>> = {}) =>
  defineTool({
    name: "pay",
    description: "Pays.",
    parameters: order,
    execute: ({ amount }) => `paid ${amount}`,
    ...more,
  });

const other = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

const asked = (way: Way, args: object = given): ScriptedAnswer => ({
  toolCalls: [
    way === "directly"
      ? { name: "pay", arguments: args }
      : { name: "call_tool", arguments: { name: "pay", arguments: args } },
  ],
});
const toolsFor = (way: Way, tool: Tool<never>) => (way === "directly" ? [tool, other] : deferredTools([tool, other]));

interface Scene {
  readonly tool: Tool<never>;
  readonly agent?: Partial<AgentOptions>;
  readonly runtime?: Partial<RuntimeOptions>;
  readonly stubs?: readonly SessionStub[];
  /** Calls of one answer each. Default: one call. */
  readonly calls?: readonly object[];
  readonly decide?: object;
}

const told = (event: TroupeEvent) =>
  event.type.startsWith("tool.") && "name" in event
    ? [`${event.type} ${event.name}${"outcome" in event ? ` ${event.outcome}` : ""}`]
    : [];

/** What a person and a program see of the calls. */
async function played(
  way: Way,
  { tool, agent: more = {}, runtime: options = {}, stubs, calls = [given], decide }: Scene,
) {
  const model = scriptedModel([...calls.map((args) => asked(way, args)), "Done."]);
  const definition = defineAgent({ name: "clerk", model, tools: toolsFor(way, tool), ...more });
  const runtime = await createRuntime({ agents: [definition], ...options });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("clerk", { agentId: "clerk-1", ...(stubs ? { stubs } : {}) });
  await agent.start();
  const turn = agent.executeTurn("Go.");
  const requests: unknown[] = [];
  if (decide !== undefined) {
    await turn.settled;
    for (const request of await runtime.requests()) {
      const { requestId, kind, name, prompt, arguments: args, argumentsHash } = request;
      requests.push({ kind, name, prompt, args });
      await runtime.decide(requestId, { argumentsHash, ...decide } as never);
    }
  }
  const { status, text, toolCalls } = await turn.result;
  const events = (await eventsOfTurn(turn)).flatMap(told);
  return { status, text, toolCalls, requests, events, results: await toolTextsOf(agent) };
}

const keys: string[] = [];
const ran: Order[] = [];
const counting = () => {
  ran.length = 0;
  return { execute: (args: Order) => (ran.push({ ...args }), `paid ${args.amount}`) };
};
let attempts = 0;

const scenes: readonly {
  readonly what: string;
  readonly scene: () => Scene;
  readonly check: (seen: Awaited<ReturnType<typeof played>>) => void;
}[] = [
  {
    what: "the approval shows the tool and its arguments; what a person has edited runs",
    scene: () => ({
      tool: payTool({
        ...counting(),
        needsApproval: ({ amount }) => amount > 1,
        describeCall: ({ amount }) => `Pay ${amount}?`,
      }),
      decide: { verdict: "edited", by: "ada", arguments: { id: "A", amount: 3 } },
    }),
    check: ({ requests, results }) => {
      expect(requests).toEqual([{ kind: "approval", name: "pay", prompt: "Pay 5?", args: given }]);
      expect(results).toEqual(["paid 3"]);
    },
  },
  {
    what: "a rejected call does not run",
    scene: () => ({
      tool: payTool({ ...counting(), needsApproval: true }),
      decide: { verdict: "rejected", by: "ada" },
    }),
    check: () => expect(ran).toEqual([]),
  },
  {
    what: "a queue and its idempotency key",
    scene: () => ({
      tool: payTool({
        effect: "keyed",
        queue: "bank",
        execute: ({ amount }, run) => `paid ${amount} as ${run.idempotencyKey}`,
      }),
      runtime: { work: { queues: { bank: { concurrency: 1 } } } },
    }),
    check: ({ results }) => expect(results).toEqual(["paid 5 as clerk-1#1:1:0"]),
  },
  {
    what: "secrets reach only the code; the model may not send them",
    scene: () => ({
      tool: defineTool({
        name: "pay",
        description: "Pays.",
        parameters: order,
        secrets: { pin: () => "canary-1234" },
        execute: ({ pin }) => {
          keys.push(pin);
          return `paid with ${pin}`;
        },
      }),
      calls: [given, { ...given, pin: "mine" }],
    }),
    check: ({ results }) => {
      expect(keys.splice(0)).toEqual(["canary-1234"]);
      expect(results[0]).toBe("paid with [secret:pin]");
      expect(results[1]).toContain("pin");
    },
  },
  {
    what: "the time limit of a once call leaves its outcome unknown",
    scene: () => ({ tool: payTool({ timeoutMs: 20, execute: async () => await new Promise(() => undefined) }) }),
    check: ({ results, events }) => {
      expect(results[0]).toContain("20 ms");
      expect(events.at(-1)).toBe("tool.failed pay outcome_unknown");
    },
  },
  {
    what: "a call without effects is tried again",
    scene: () => {
      attempts = 0;
      return {
        tool: payTool({
          effect: "none",
          maxAttempts: 2,
          execute: () => {
            attempts += 1;
            if (attempts === 1) throw new Error("busy");
            return `paid at attempt ${attempts}`;
          },
        }),
      };
    },
    check: ({ results }) => expect(results).toEqual(["paid at attempt 2"]),
  },
  {
    what: "endsTurn makes the result the answer",
    scene: () => ({ tool: payTool({ endsTurn: true }) }),
    check: ({ text }) => expect(text).toBe("paid 5"),
  },
  {
    what: "guards and hooks see the tool, rewrite its arguments and deny it",
    scene: () => ({
      tool: payTool(counting()),
      agent: {
        plugins: [
          guard({
            toolCall: ({ name, arguments: args }) =>
              name === "pay" && (args as Order).amount > 8
                ? { block: "too much" }
                : { rewrite: { ...(args as Order), id: "B" } },
            toolResult: ({ call, text }) => ({ rewrite: `${call.name}: ${text}` }),
          }),
        ],
        hooks: {
          beforeEachTool: (draft) => {
            if (draft.call.name === "pay" && JSON.stringify(draft.call.arguments).includes("7"))
              draft.deny("never seven");
          },
        },
      },
      calls: [given, { ...given, amount: 9 }, { ...given, amount: 7 }],
    }),
    check: ({ results }) => {
      expect(ran).toEqual([{ id: "B", amount: 5 }]);
      expect(results[0]).toBe("pay: paid 5");
      expect(results[1]).toContain("too much");
      expect(results[2]).toContain("never seven");
    },
  },
  {
    what: "a budget counts it once",
    scene: () => ({ tool: payTool(counting()), agent: { budget: { maxToolCalls: 2 } }, calls: [given, given, given] }),
    check: ({ toolCalls }) => {
      expect(toolCalls).toBe(2);
      expect(ran).toHaveLength(2);
    },
  },
  {
    what: "stubs take its place by its name",
    scene: () => ({
      tool: payTool(counting()),
      stubs: [{ tool: "pay", arguments: { id: "A" }, output: "as if paid" }],
    }),
    check: ({ results }) => {
      expect(results).toEqual(["as if paid"]);
      expect(ran).toEqual([]);
    },
  },
];

describe.each(scenes)("$what", ({ scene, check }) => {
  test("directly and through call_tool alike", async () => {
    const direct = await played("directly", scene());
    check(direct);
    const through = await played("through call_tool", scene());
    check(through);
    expect(through).toEqual(direct);
  });
});

test.each([{ deniedTools: ["pay"] }, { allowedTools: ["search_tools", "call_tool", "look"] }])(
  "a tool that a child was not granted is not reached through call_tool: %j",
  async (policy) => {
    const { execute } = counting();
    const call = (name: string) => ({ name: "call_tool", arguments: { name, arguments: name === "pay" ? given : {} } });
    const model = scriptedModel([
      { toolCalls: [call("pay"), { name: "pay", arguments: given }, call("look")] },
      "Done.",
    ]);
    const child = defineAgent({ name: "child", model, tools: deferredTools([payTool({ execute }), other]) });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel([{ toolCalls: [{ name: "child", arguments: { input: "Go." } }] }, "Done."]),
      tools: [subagent(child, { policy })],
    });
    const runtime = await createRuntime({ agents: [lead] });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent("lead");
    await agent.start();
    const turn = agent.executeTurn("Go.");
    await turn.result;
    const ended = (await eventsOfTurn(turn)).flatMap((event) =>
      (event.type === "tool.completed" || event.type === "tool.failed") && event.agentName === "child"
        ? [`${event.type} ${event.name}`]
        : [],
    );
    expect(ended.toSorted()).toEqual(["tool.completed look", "tool.failed pay", "tool.failed pay"]);
    expect(ran).toEqual([]);
  },
);

test("followers never see call_tool while the answer streams, and records name the tool with its arguments", async () => {
  const stores = memoryStores();
  const model = scriptedModel([asked("through call_tool"), { toolCalls: [{ name: "look", arguments: {} }] }, "Done."]);
  const tools = deferredTools([payTool(), other], { keep: ["look"] });
  const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model, tools })], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("clerk", { agentId: "clerk-1" });
  await agent.start();
  const events: TroupeEvent[] = [];
  runtime.subscribe((event) => void events.push(event));
  await agent.executeTurn("Go.").result;
  expect(JSON.stringify(events)).not.toContain("call_tool");
  expect(events.some((event) => event.type === "call.delta" && event.name === "look")).toBe(true);
  const record = await sessionRecord(runtime, "clerk-1", { messages: true });
  expect(JSON.stringify(record)).not.toContain("call_tool");
  expect(JSON.stringify(record)).toContain('"name":"pay","arguments":{"id":"A","amount":5}');
  const feed = new Feed({});
  feed.add({ stores, tenant: "default" });
  const shown = await feed.call("clerk-1", "clerk-1#1:1:0");
  expect({ name: shown.name, asked: shown.asked }).toEqual({ name: "pay", asked: '{"id":"A","amount":5}' });
});

describeRuntimes("a deferred call whose process ends", (stage) => {
  test("is reconciled as one of its tool, in the next process", async () => {
    const reached = createGate();
    const seen: unknown[] = [];
    const definitionFor = (isDoomed: boolean) =>
      defineAgent({
        name: "clerk",
        model: scriptedModel(({ messages }) =>
          messages.at(-1)?.role === "tool" ? "Done." : asked("through call_tool"),
        ),
        tools: deferredTools([
          payTool({
            execute: async (_args, run) => {
              await run.note({ sent: true });
              if (isDoomed) await reached.pass();
              return "never";
            },
            reconcile: async (args, run) => {
              seen.push({ ...args }, run.noted);
              return { done: true, result: "paid before" };
            },
          }),
          other,
        ]),
      });
    const doomed = await stage().openProcess({ agents: [definitionFor(true)] });
    const before = await doomed.runtime.agent("clerk", { agentId: "clerk-1" });
    await before.start();
    before.executeTurn("Go.");
    await reached.reached();
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({ agents: [definitionFor(false)] });
    const agent = await survivor.find("clerk-1");
    await survivor.recover();
    expect((await agent.turn("clerk-1#1").result).text).toBe("Done.");
    expect(await toolTextsOf(agent)).toEqual(["paid before"]);
    expect(seen).toEqual([given, { sent: true }]);
  });
});
