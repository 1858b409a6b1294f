import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  type AgentTool,
  askUser,
  createRuntime,
  defineAgent,
  defineTool,
  InvalidInputError,
  memoryStores,
  type ModelRequest,
  type Stores,
  subagent,
  textOf,
} from "../../src/index.ts";
import { Feed } from "../../src/inspector/index.ts";
import { forkPoints } from "../../src/runtime/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { fork, type ForkOptions, type ScriptedReply, scriptedModel } from "../../src/testing/index.ts";
import { classicValues, isTaken } from "../support/wrong-values.ts";

/** The effects outside, in order. */
interface Shop {
  readonly looked: string[];
  readonly paid: string[];
  readonly desk: AgentDefinition;
  readonly requests: readonly ModelRequest[];
}

const order = z.object({ order: z.string() });

type Script = (request: ModelRequest, turn: number, step: number) => ScriptedReply | string;

/** Two steps with tools, and an answer that names all results. */
const usual: Script = (_request, turn, step) => {
  if (step === 1) return { toolCalls: [{ name: "look", arguments: { order: `${turn}` } }] };
  if (step === 2) return { toolCalls: [{ name: "refund", arguments: { order: `${turn}` } }] };
  return "Done.";
};

function shopOf(script: Script = usual, more: { readonly tools?: readonly AgentTool[] } = {}): Shop {
  const looked: string[] = [];
  const paid: string[] = [];
  const model = scriptedModel((request, { call }) => {
    const turn = Number(call?.turnId.split("#").at(-1));
    return script(request, turn, call?.step ?? 0);
  });
  const desk = defineAgent({
    name: "desk",
    model,
    instructions: "You serve the shop.",
    tools: [
      defineTool({
        name: "look",
        description: "Looks at an order.",
        parameters: order,
        effect: "none",
        execute: ({ order: id }) => `order ${id}, look ${looked.push(id)}`,
      }),
      defineTool({
        name: "refund",
        description: "Pays the money back.",
        parameters: order,
        effect: "once",
        execute: ({ order: id }) => `refunded ${id}, payment ${paid.push(id)}`,
      }),
      ...(more.tools ?? []),
    ],
  });
  return { looked, paid, desk, requests: model.calls };
}

/** Runs turns of an agent to their ends. */
async function recorded(
  { desk }: Shop,
  inputs: readonly string[] = ["Refund order 1."],
  stores: Stores = memoryStores(),
) {
  const runtime = await createRuntime({ agents: [desk], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent(desk, { agentId: "shop" });
  await agent.start();
  for (const input of inputs) await agent.executeTurn(input).result;
  return { stores, agentId: "shop", runtime };
}

async function forked(source: Parameters<typeof fork>[0], options: ForkOptions) {
  const made = await fork(source, options);
  onTestFinished(() => made.close());
  return made;
}

const recordOf = async (made: Awaited<ReturnType<typeof fork>>) =>
  await made.runtime.stores.readAgent({ tenant: "default", agentId: made.agentId });

const textsOf = async (made: Awaited<ReturnType<typeof fork>>): Promise<string[]> =>
  (await made.agent.getMessages()).map(({ content }) => textOf(content));

const twice: Script = (_request, _turn, step) =>
  step <= 3 ? { toolCalls: [{ name: "refund", arguments: { order: step === 3 ? "9" : "1" } }] } : "Done.";

const payAndLook: Script = (_request, _turn, step) =>
  step === 1 ? { toolCalls: ["pay", "look", "refund"].map((name) => ({ name, arguments: { order: "1" } })) } : "Done.";

const sendAndAsk: Script = (_request, _turn, step) =>
  step === 1
    ? {
        toolCalls: [
          { name: "send", arguments: { order: "1" } },
          { name: "ask_user", arguments: { question: "Sure?" } },
        ],
      }
    : "Done.";

const lookOnce: Script = (_request, _turn, step) => (step === 1 ? { toolCalls: [{ name: "lookup" }] } : "Done.");

const askHelper: Script = (_request, _turn, step) =>
  step === 1 ? { toolCalls: [{ name: "helper", arguments: { input: "Help." } }] } : "Done.";

describe("fork", () => {
  test("shares the past, runs tools without an effect, and gives the recorded result to a payment", async () => {
    const shop = shopOf();
    const { stores } = await recorded(shop);
    expect([shop.looked, shop.paid]).toEqual([["1"], ["1"]]);
    const made = await forked({ stores, agentId: "shop" }, { at: { turn: 1, step: 1 }, agents: shop.desk });
    const result = await made.turn.result;
    expect(result).toMatchObject({ status: "completed", text: "Done." });
    expect([shop.looked, shop.paid]).toEqual([["1", "1"], ["1"]]);
    expect(await textsOf(made)).toEqual([
      "Refund order 1.",
      "",
      "order 1, look 2",
      "",
      "refunded 1, payment 1",
      "Done.",
    ]);
    expect(made).toMatchObject({ originId: "shop", originTurn: { turnId: "shop#1", status: "completed", steps: 3 } });
    const record = await recordOf(made);
    expect(record?.forkedFrom).toEqual({ agentId: "shop", turn: 1, step: 1 });
  });

  test("continues in the middle of a turn and after its end", async () => {
    const shop = shopOf();
    const { stores } = await recorded(shop, ["one", "two"]);
    const middle = await forked({ stores, agentId: "shop" }, { at: { turn: 2, step: 3 }, agents: shop.desk });
    expect((await middle.turn.result).steps).toBe(3);
    expect(await textsOf(middle)).toHaveLength(12);
    const end = await forked(
      { stores, agentId: "shop" },
      { at: { turn: 1 }, agents: shop.desk, input: "And order 2." },
    );
    await end.turn.result;
    expect((await textsOf(end)).slice(6)).toEqual([
      "And order 2.",
      "",
      "order 2, look 3",
      "",
      "refunded 2, payment 2",
      "Done.",
    ]);
    expect(shop.paid).toEqual(["1", "2"]);
  });

  test("gives equal calls their recorded results in order, and others an error that the model can read", async () => {
    const shop = shopOf(twice);
    const { stores } = await recorded(shop);
    const more: Script = (request, turn, step) =>
      step === 4
        ? { toolCalls: [{ name: "refund", arguments: { order: "1" } }] }
        : twice(request, turn, step === 3 ? 2 : step);
    const other = shopOf((request, turn, step) =>
      step === 3 ? { toolCalls: [{ name: "refund", arguments: { order: "7" } }] } : more(request, turn, step),
    );
    const made = await forked(
      { stores, agentId: "shop" },
      { at: { turn: 1, step: 1 }, agents: other.desk, budget: { maxSteps: 5 } },
    );
    await made.turn.result;
    const results = (await textsOf(made)).filter((text) => text !== "" && text !== "Done.").slice(1);
    const notRun =
      "The tool refund was not run: this is a fork of an earlier run, and no further recorded call of refund has these arguments.";
    expect(results).toEqual(["refunded 1, payment 1", "refunded 1, payment 2", notRun, notRun]);
    expect(other.paid).toEqual([]);
  });

  test("runs an allowed tool with the ids of the fork, and simulated ones in its place", async () => {
    const keys: string[] = [];
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: order,
      effect: "keyed",
      execute: (_args, { idempotencyKey }) => `paid ${keys.push(idempotencyKey)}`,
    });
    const shop = shopOf(payAndLook, { tools: [pay] });
    const { stores } = await recorded(shop);
    const simulated: unknown[] = [];
    const made = await forked(
      { stores, agentId: "shop" },
      {
        at: { turn: 1, step: 1 },
        agents: shop.desk,
        allow: ["pay"],
        simulate: {
          look: (args: { order: string }, { agentName, callId }) =>
            `simulated ${simulated.push([args, agentName, callId])}`,
          refund: () => {
            throw new Error("the bank is closed");
          },
        },
      },
    );
    await made.turn.result;
    expect(keys).toEqual(["shop#1:1:0", `${made.agentId}#1:1:0`]);
    expect(simulated).toEqual([[{ order: "1" }, "desk", `${made.agentId}#1:1:1`]]);
    expect((await textsOf(made)).slice(2, 5).toSorted()).toEqual([
      "Error: the bank is closed",
      "paid 2",
      "simulated 1",
    ]);
    expect([shop.looked, shop.paid]).toEqual([["1"], ["1"]]);
    expect((await recordOf(made))?.forkedFrom?.allowed).toEqual(["pay"]);
  });

  test.each(["await", "background"] as const)("holds back the tools of subagents, in mode %s", async (mode) => {
    const charged: string[] = [];
    const charge = defineTool({
      name: "charge",
      description: "Charges.",
      parameters: order,
      effect: "keyed",
      queue: "charges",
      execute: ({ order: id }) => `charged ${charged.push(id)}`,
    });
    const clerk = defineAgent({
      name: "clerk",
      model: scriptedModel((_request, { call }) =>
        call?.step === 1 ? { toolCalls: [{ name: "charge", arguments: { order: "5" } }] } : "It is charged.",
      ),
      tools: [charge],
    });
    const script: Script = (_request, _turn, step) => {
      if (step === 1) return { toolCalls: [{ name: "clerk", arguments: { input: "Charge order 5." } }] };
      if (step === 2 && mode === "background") return { toolCalls: [{ name: "subagent_wait" }] };
      return "Done.";
    };
    const shop = shopOf(script, { tools: [subagent(clerk, { mode })] });
    const { stores } = await recorded(shop);
    expect(charged).toEqual(["5"]);
    for (const step of mode === "await" ? [1] : [1, 2]) {
      const made = await forked({ stores, agentId: "shop" }, { at: { turn: 1, step }, agents: shop.desk });
      await made.turn.result;
      const [child] = await made.runtime
        .list({ rootAgentId: made.agentId })
        .then((all) => all.filter(({ depth }) => depth > 0));
      expect(child?.forkedFrom).toMatchObject({ agentId: "shop", turn: 1, step });
      const messages = await made.runtime.stores.messages({ tenant: "default", agentId: child?.agentId ?? "" });
      expect(messages.map(({ content }) => textOf(content))).toContain("charged 1");
    }
    expect(charged).toEqual(["5"]);
  });

  test("asks no person for a call that is not run, and for an allowed one as ever", async () => {
    const judged: string[] = [];
    const sent: string[] = [];
    const send = defineTool({
      name: "send",
      description: "Sends.",
      parameters: order,
      effect: "once",
      needsApproval: ({ order: id }) => judged.push(id) > 0,
      execute: ({ order: id }) => `sent ${sent.push(id)}`,
    });
    const shop = shopOf(sendAndAsk, { tools: [send, askUser()] });
    const { desk } = shop;
    const runtime = await createRuntime({ agents: [desk] });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent(desk, { agentId: "shop" });
    await agent.start();
    const turn = agent.executeTurn("Send it.");
    await turn.settled;
    const source = { stores: runtime.stores, agentId: "shop" };
    const open = await forked(source, { at: { turn: 1 }, agents: desk });
    for (const { requestId, kind } of await agent.requests()) {
      await runtime.decide(
        requestId,
        kind === "approval" ? { verdict: "approved" } : { verdict: "answered", result: "yes" },
      );
    }
    await turn.result;
    expect([judged, sent]).toEqual([["1"], ["1"]]);

    const held = await forked(source, { at: { turn: 1, step: 1 }, agents: desk });
    await held.turn.result;
    expect((await textsOf(held)).slice(2, 4).toSorted()).toEqual(["sent 1", "yes"]);
    expect([judged, sent]).toEqual([["1"], ["1"]]);

    const allowed = await forked(source, { at: { turn: 1, step: 1 }, agents: desk, allow: ["send"] });
    expect(await allowed.turn.settled).toMatchObject({ status: "waiting", requests: [{ name: "send" }] });

    // The requests that were open at the point are open in the fork, and the answers of the origin do not reach it.
    expect(await open.turn.settled).toMatchObject({ status: "waiting" });
    const asked = await open.agent.requests();
    expect(asked.map(({ name }) => name).toSorted()).toEqual(["ask_user", "send"]);
    for (const { requestId, kind } of asked) {
      await open.agent.decide(
        requestId,
        kind === "approval" ? { verdict: "rejected", reason: "not now" } : { verdict: "answered", result: "no" },
      );
    }
    await open.turn.result;
    expect((await textsOf(open)).slice(2, 4).toSorted()).toEqual(["Rejected by user: not now", "no"]);
    expect(sent).toEqual(["1"]);
  });

  test("spends an unused budget, or the given one", async () => {
    const shop = shopOf();
    const stores = memoryStores();
    const runtime = await createRuntime({ agents: [shop.desk], stores });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent("desk", { agentId: "shop", budget: { maxSteps: 3 } });
    await agent.start();
    await agent.executeTurn("one").result;
    expect((await agent.executeTurn("two").result).stopReason).toBe("steps_limit");
    const at = { turn: 1, step: 2 };
    const made = await forked({ stores, agentId: "shop" }, { at, agents: shop.desk });
    expect(await made.turn.result).toMatchObject({ status: "completed", steps: 3 });
    const accounts = await made.runtime.accounts(made.agentId);
    expect(accounts.map(({ id, used, limits }) => [id.split(":")[0], used.steps, limits.maxSteps])).toEqual([
      ["agent", 2, 3],
      ["turn", 2, 10],
    ]);
    const short = await forked({ stores, agentId: "shop" }, { at, agents: shop.desk, budget: { maxSteps: 1 } });
    expect(await short.turn.result).toMatchObject({ status: "stopped", stopReason: "steps_limit" });
  });

  test("binds subagents that run at the point to the given budget", async () => {
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const wait = defineTool({
      name: "wait",
      description: "Waits.",
      parameters: z.object({}),
      effect: "none",
      async execute() {
        reached.resolve();
        await gate.promise;
        return "waited";
      },
    });
    const helper = defineAgent({
      name: "helper",
      // Its price is not known, so a limit of costs allows no further call.
      model: scriptedModel((_request, { call }) => (call?.step === 1 ? { toolCalls: [{ name: "wait" }] } : "Helped.")),
      tools: [wait],
    });
    const shop = shopOf(askHelper, { tools: [subagent(helper)] });
    const runtime = await createRuntime({ agents: [shop.desk] });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent(shop.desk, { agentId: "shop", budget: { maxTokens: 50_000 } });
    await agent.start();
    const turn = agent.executeTurn("Ask the helper.");
    await reached.promise;
    const source = { stores: runtime.stores, agentId: "shop" };
    const made = await forked(source, { at: { turn: 1 }, agents: shop.desk, budget: { maxCost: 1 } });
    gate.resolve();
    await made.turn.result;
    await turn.result;
    const [child] = (await made.runtime.list({ rootAgentId: made.agentId })).filter(({ depth }) => depth > 0);
    expect(child?.binding).toEqual({ strict: false, maxTokens: 50_000, maxCostMicros: 1_000_000 });
    expect(child?.error?.message).toContain("price");
  });

  test("changes the past: its prompt, its instructions, a result, an answer, the model", async () => {
    const shop = shopOf();
    const { stores } = await recorded(shop, ["one", "two"]);
    const model = scriptedModel("Changed.", { name: "other" });
    const made = await forked(
      { stores, agentId: "shop" },
      {
        at: { turn: 2, step: 3 },
        agents: shop.desk,
        model,
        input: "Be short.",
        edit: {
          prompt: "three",
          instructions: "You serve the bank.",
          messages: { "shop#1:1:0": "order 1 is lost", "shop#1:3": "Not done." },
        },
      },
    );
    expect((await made.turn.result).text).toBe("Changed.");
    const [request] = model.calls;
    expect(request?.messages.map(({ content }) => textOf(content))).toEqual([
      "You serve the bank.",
      "one",
      "",
      "order 1 is lost",
      "",
      "refunded 1, payment 1",
      "Not done.",
      "three",
      "",
      "order 2, look 2",
      "",
      "refunded 2, payment 2",
      "Be short.",
    ]);
    const next = await made.agent.executeTurn("four").result;
    expect(next.status).toBe("completed");
    expect(textOf(model.calls[1]?.messages[0]?.content ?? "")).toBe("You serve the shop.");
  });

  test("is a tree of its own: two forks of one point, and forks of forks", async () => {
    const shop = shopOf();
    const { stores } = await recorded(shop);
    const before = await stores.exportTree("default", "shop");
    const options = { at: { turn: 1, step: 1 }, agents: shop.desk } as const;
    const shared = await createRuntime({ agents: [shop.desk] });
    onTestFinished(() => shared.shutdown());
    const made = await Promise.all(
      [1, 2].map(() => forked({ stores, agentId: "shop" }, { at: options.at, runtime: shared })),
    );
    await Promise.all(made.map(({ turn }) => turn.result));
    const [one, two] = made;
    expect(one?.agentId).not.toBe(two?.agentId);
    const again = await forked(
      { stores: shared.stores, agentId: one?.agentId ?? "" },
      { at: { turn: 1, step: 2 }, agents: shop.desk },
    );
    await again.turn.result;
    expect((await textsOf(again)).slice(3)).toEqual(["", "refunded 1, payment 1", "Done."]);
    expect((await recordOf(again))?.forkedFrom).toEqual({
      agentId: one?.agentId,
      turn: 1,
      step: 2,
      firstAgentId: "shop",
    });
    expect(shop.paid).toEqual(["1"]);
    expect(await stores.exportTree("default", "shop")).toEqual(before);
  });

  test("keeps the rule after a restart in a process that did not fork it, also under a newer definition", async () => {
    const gate = Promise.withResolvers<void>();
    let isStuck = true;
    const script: Script = (request, turn, step) => {
      if (step === 2 && isStuck) return { text: "never", delayUntil: gate.promise };
      return usual(request, turn, step);
    };
    isStuck = false;
    const shop = shopOf(script);
    const { stores: origin } = await recorded(shop);
    isStuck = true;
    const stores = memoryStores();
    const first = await createRuntime({ agents: [shop.desk], stores: { ...stores, close: async () => undefined } });
    const made = await fork(
      { stores: origin, agentId: "shop" },
      { at: { turn: 1, step: 1 }, runtime: first, simulate: { refund: () => "simulated" } },
    );
    await made.agent.getMessages();
    const cut = made.turn.result.catch(() => undefined);
    await first.shutdown();
    await made.close();
    await cut;
    isStuck = false;
    const second = await createRuntime({ agents: [shop.desk], stores });
    onTestFinished(() => second.shutdown());
    const agent = await second.find(made.agentId);
    await agent.start();
    await agent.openTurn()?.result;
    const texts = (await agent.getMessages()).map(({ content }) => textOf(content));
    expect(texts.slice(3)).toEqual(["", "refunded 1, payment 1", "Done."]);
    expect(shop.paid).toEqual(["1"]);
  });

  test("finds the subagents that its code had started", async () => {
    const helper = defineAgent({ name: "helper", model: scriptedModel("Helped.") });
    const gate = Promise.withResolvers<void>();
    let runs = 0;
    const lookup = defineTool({
      name: "lookup",
      description: "Asks a helper.",
      parameters: z.object({}),
      effect: "none",
      async execute(_args, run) {
        const child = await run.spawn(helper, "Help.", { key: "one" });
        const { text } = await child.result;
        runs += 1;
        if (runs === 1) await gate.promise;
        return `${text} ${child.agentId.split("~")[1]}`;
      },
    });
    const shop = shopOf(lookOnce, { tools: [lookup] });
    const runtime = await createRuntime({ agents: [shop.desk, helper] });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent(shop.desk, { agentId: "shop" });
    await agent.start();
    const turn = agent.executeTurn("Look it up.");
    for await (const { type, agentId } of runtime.follow("shop"))
      if (type === "turn.completed" && agentId !== "shop") break;
    const made = await forked(
      { stores: runtime.stores, agentId: "shop" },
      { at: { turn: 1 }, agents: [shop.desk, helper] },
    );
    await made.turn.result;
    gate.resolve();
    await turn.result;
    const [mine, theirs] = [await made.agent.getMessages(), await agent.getMessages()];
    expect(mine.map(({ content }) => content)).toEqual(theirs.map(({ content }) => content));
    expect(await made.runtime.list({ rootAgentId: made.agentId })).toHaveLength(2);
  });

  test("refuses tools that the provider executes, unless they are allowed", async () => {
    const shop = shopOf();
    const { stores } = await recorded(shop);
    const model = { ...scriptedModel("Searched."), hostedTools: ["web_search"] };
    const options = { at: { turn: 1, step: 3 }, agents: shop.desk, model } as const;
    const refused = await forked({ stores, agentId: "shop" }, options);
    const { error } = await refused.turn.result;
    expect(error?.message).toContain('fork with allow: ["web_search"]');
    const allowed = await forked({ stores, agentId: "shop" }, { ...options, allow: ["web_search"] });
    expect((await allowed.turn.result).text).toBe("Searched.");
  });

  test("is stored in SQLite as an ordinary tree", async () => {
    const shop = shopOf();
    const { stores } = await recorded(shop);
    const made = await forked(
      { stores, agentId: "shop" },
      { at: { turn: 1, step: 2 }, agents: shop.desk, stores: sqliteStores(":memory:") },
    );
    expect((await made.turn.result).text).toBe("Done.");
    expect(await made.runtime.turns()).toMatchObject([{ agentId: made.agentId, status: "completed" }]);
  });

  test("sees the placeholders of an export whose secrets are redacted", async () => {
    const shop = shopOf();
    const { stores } = await recorded(shop, ["My key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789."]);
    const folder = mkdtempSync(join(tmpdir(), "troupe-fork-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const feed = new Feed({});
    feed.add({ stores, tenant: "default" });
    const file = join(folder, "run.json");
    writeFileSync(file, JSON.stringify(await feed.export("shop")));
    const made = await forked(file, { at: { turn: 1, step: 2 }, agents: shop.desk });
    await made.turn.result;
    expect(made.redacted).toBe(1);
    expect((await textsOf(made))[0]).toBe("My key is [redacted].");
    expect((await textsOf(made)).at(-2)).toBe("refunded 1, payment 1");
    expect(shop.paid).toEqual(["1"]);
  });

  test("lists the points of a tree", async () => {
    const shop = shopOf();
    const { stores } = await recorded(shop, ["one", "two"]);
    const tree = await stores.exportTree("default", "shop");
    const points = tree ? forkPoints(tree) : [];
    expect(points.map(({ turn, step, isOpen, model }) => [turn, step, isOpen, model])).toEqual([
      [1, 1, true, "scripted"],
      [1, 2, true, "scripted"],
      [1, 3, true, "scripted"],
      [1, null, false, null],
      [2, 1, true, "scripted"],
      [2, 2, true, "scripted"],
      [2, 3, true, "scripted"],
      [2, null, false, null],
    ]);
  });
});

describe("fork: refused", () => {
  const cases: readonly [string, (shop: Shop) => Partial<ForkOptions>, string][] = [
    [
      "a point that the run does not have",
      () => ({ at: { turn: 3, step: 1 } }),
      'at names turn 3, step 1, which "shop" does not have; it can be forked at 1:1 to 1:3, 1',
    ],
    ["no definitions", () => ({ agents: undefined }), "agents is missing"],
    [
      "a missing definition",
      () => ({ agents: defineAgent({ name: "else", model: scriptedModel("hi") }) }),
      'agents of the run have the definition "desk", which is not among those given: else',
    ],
    [
      "an unknown tool in allow",
      () => ({ allow: ["refunds"] }),
      'allow names the tool "refunds", which no agent of the tree has; its tools are look, refund',
    ],
    ["an unknown tool in simulate", () => ({ simulate: { refunds: "recorded" } }), 'simulate names the tool "refunds"'],
    [
      "a tool in both",
      () => ({ allow: ["refund"], simulate: { refund: () => "" } }),
      '"refund" is in allow and in simulate',
    ],
    [
      "no input after a turn",
      () => ({ at: { turn: 1 } }),
      "turn 1 has ended at this point, so the fork needs an input",
    ],
    [
      "two prompts",
      () => ({ at: { turn: 1, step: 1 }, input: "a", edit: { prompt: "b" } }),
      "replace the same message",
    ],
    [
      "instructions after a turn",
      () => ({ at: { turn: 1 }, input: "a", edit: { instructions: "b" } }),
      "edit.instructions changes an open turn",
    ],
    [
      "a message that comes later",
      () => ({ edit: { messages: { "shop#1:3": "b" } } }),
      'edit.messages names "shop#1:3", which the run does not have before this point',
    ],
  ];

  test.each(cases)("%s", async (_name, changed, words) => {
    const shop = shopOf();
    const { stores } = await recorded(shop);
    const options = { at: { turn: 1, step: 2 }, agents: shop.desk, ...changed(shop) } as ForkOptions;
    const failure = await fork({ stores, agentId: "shop" }, options).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(InvalidInputError);
    expect((failure as Error).message).toContain(words);
  });

  test.each(["[null]", '[{"id":"#1:2:0"}]', "{", "{}"])("a fork whose recorded calls are %s", async (content) => {
    const shop = shopOf();
    const { stores } = await recorded(shop);
    const at = { turn: 1, step: 1 };
    const made = await forked({ stores, agentId: "shop" }, { at, agents: shop.desk });
    await made.turn.result;
    const tree = await made.runtime.stores.exportTree("default", made.agentId);
    if (!tree) throw new Error("the fork is not stored");
    const copy = memoryStores();
    const agents = tree.agents.map((agent) => ({
      ...agent,
      artifacts: agent.artifacts.map((artifact) => ({ ...artifact, content })),
    }));
    await copy.importTree({ ...tree, agents }, "test");
    await expect(fork({ stores: copy, agentId: made.agentId }, { at, agents: shop.desk })).rejects.toThrow(
      "is not a list of recorded calls",
    );
  });

  test("what a shared runtime cannot have", async () => {
    const shop = shopOf();
    const { stores, runtime } = await recorded(shop);
    const at = { turn: 1, step: 1 };
    await expect(fork({ stores, agentId: "shop" }, { at, runtime, agents: shop.desk })).rejects.toThrow(
      "leave out agents",
    );
    const other = await createRuntime({ agents: [shop.desk], tenant: "other" });
    onTestFinished(() => other.shutdown());
    await expect(fork({ stores, agentId: "shop" }, { at, runtime: other })).rejects.toThrow('of tenant "default"');
  });

  test("wrong values of model with a runtime, before anything is stored", async () => {
    const { stores, runtime } = await recorded(shopOf());
    const at = { turn: 1, step: 1 };
    // A text is the name of a model.
    for (const model of classicValues().filter((value) => typeof value !== "string")) {
      const forking = async () => await fork({ stores, agentId: "shop" }, { at, runtime, model: model as string });
      expect(await isTaken("model", forking)).toBe(false);
    }
    expect(await runtime.list({ rootsOnly: true })).toHaveLength(1);
  });

  test.each([
    [{ at: { turn: 0 } }, "fork(): at.turn is 0; expected a whole number of at least 1"],
    [{ at: { turn: 1, step: "2" } }, 'at.step is the text "2"'],
    [{ at: "1:2" }, "at"],
    [{}, "at"],
    [{ at: { turn: 1 }, agents: 5 }, "agents"],
    [{ at: { turn: 1 }, input: "" }, "input"],
    [{ at: { turn: 1 }, edit: { input: "x" } }, "prompt"],
    [{ at: { turn: 1 }, edit: { messages: { a: 1 } } }, "edit.messages"],
    [{ at: { turn: 1 }, simulate: { refund: "live" } }, "simulate"],
    [{ at: { turn: 1 }, allow: "refund" }, 'allow is the text "refund"; expected a list of names of tools'],
    [{ at: { turn: 1 }, budget: { maxSteps: -1 } }, "budget"],
    [{ at: { turn: 1 }, stores: {} }, "stores"],
    [{ at: { turn: 1 }, runtime: {} }, "runtime"],
    [{ at: { turn: 1 }, model: 5 }, "model"],
    [{ at: { turn: 1 }, tools: {} }, "simulate"],
  ])("the options %j", async (options, words) => {
    const shop = shopOf();
    const { stores } = await recorded(shop);
    const given = { agents: shop.desk, ...options } as unknown as ForkOptions;
    const failure = await fork({ stores, agentId: "shop" }, given).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(InvalidInputError);
    expect((failure as Error).message).toContain(words);
  });
});
