import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  type AgentTool,
  createRuntime,
  defineAgent,
  defineTool,
  memoryStores,
  textOf,
  type Tool,
} from "../../src/index.ts";
import { deferredTools, guard } from "../../src/kit/index.ts";
import { replay, type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import { callerOf, connected, openDesk } from "../mcp/served-desk.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { eventsOfTurn, nextEvent } from "../support/turn-probes.ts";
import { resultsOf } from "./kit-runs.ts";

const keys: string[] = [];
const pay = defineTool({
  name: "pay_invoice",
  description: "Pays an open invoice by bank transfer.",
  parameters: z.object({ amount: z.number() }),
  needsApproval: ({ amount }) => amount > 100,
  execute: ({ amount }, run) => {
    keys.push(run.idempotencyKey);
    return `paid ${amount}`;
  },
});
const others = Array.from({ length: 60 }, (_, index) =>
  defineTool({
    name: `archive_${index}`,
    description: `Reads shelf ${index} of the archive.`,
    parameters: z.object({}),
    effect: "none",
    execute: () => `shelf ${index}`,
  }),
);
const many: readonly Tool<never>[] = [pay, ...others];

const through = (name: string, args: unknown): ScriptedAnswer => ({
  toolCalls: [{ name: "call_tool", arguments: { name, arguments: args } }],
});
const call = (name: string, args: object) => ({ name: "call_tool", arguments: { name, arguments: args } });
const search = (query: string) => ({ name: "search_tools", arguments: { query } });

async function agentWith(answers: readonly ScriptedAnswer[], tools: readonly AgentTool[] = deferredTools(many)) {
  const clerk = defineAgent({ name: "clerk", model: scriptedModel([...answers]), tools });
  const runtime = await createRuntime({ agents: [clerk] });
  const agent = await runtime.agent("clerk", { agentId: "clerk-1" });
  await agent.start();
  return { agent, runtime };
}

const deferringClerk = (answers: readonly ScriptedAnswer[]) =>
  defineAgent({ name: "clerk", model: scriptedModel([...answers]), tools: deferredTools(many) });

const firstTool = (text = "") => JSON.parse(text.split("\n")[0] ?? "") as { name: string; parameters: object };

describe("deferredTools()", () => {
  test("the prompt has two tools however many there are, and keeps what the model wrote", async () => {
    const prompts: { readonly tools: readonly string[]; readonly calls: readonly string[] }[] = [];
    const answers: ScriptedAnswer[] = [through("archive_7", {}), "Done."];
    const model = scriptedModel(({ messages, tools }, { index }) => {
      const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
      prompts.push({
        tools: (tools ?? []).map(({ name }) => name),
        calls: calls.map(({ name, arguments: text }) => name + text),
      });
      return answers[index] ?? "Done.";
    });
    const clerk = defineAgent({ name: "clerk", model, tools: deferredTools(many, { keep: ["archive_3"] }) });
    const runtime = await createRuntime({ agents: [clerk] });
    const agent = await runtime.agent("clerk");
    await agent.start();
    await agent.executeTurn("Go.").result;
    expect(prompts).toEqual([
      { tools: ["archive_3", "search_tools", "call_tool"], calls: [] },
      { tools: ["archive_3", "search_tools", "call_tool"], calls: ['call_tool{"name":"archive_7","arguments":{}}'] },
    ]);
    await runtime.shutdown();
  });

  test("a call is one of its tool: name in events, idempotency key, validation with the same words", async () => {
    const { agent, runtime } = await agentWith([
      through("pay_invoice", { amount: "much" }),
      through("pay_invoice", JSON.stringify({ amount: 7 })),
      through("pay_invoice", { amount: 8 }),
      "Done.",
    ]);
    keys.length = 0;
    const turn = agent.executeTurn("Go.");
    await turn.result;
    const texts = (await agent.getMessages())
      .filter(({ role }) => role === "tool")
      .map(({ content }) => textOf(content));
    const [direct] = await resultsOf([{ name: "pay_invoice", arguments: { amount: "much" } }], {
      tools: [pay],
    });
    expect(texts).toEqual([direct, "paid 7", "paid 8"]);
    expect(keys).toEqual(["clerk-1#1:2:0", "clerk-1#1:3:0"]);
    const events = await eventsOfTurn(turn);
    const named = events.flatMap((event) => (event.type.startsWith("tool.") && "name" in event ? [event.name] : []));
    expect(new Set(named)).toEqual(new Set(["pay_invoice"]));
    await runtime.shutdown();
  });

  test("its approval and its guards hold; a person sees the tool and its arguments", async () => {
    const seen: string[] = [];
    const limits = guard({
      toolCall: ({ name, arguments: args }) => {
        seen.push(name + JSON.stringify(args));
        return (args as { amount: number }).amount > 1_000 ? { block: "too much" } : undefined;
      },
    });
    const answers: ScriptedAnswer[] = [
      through("pay_invoice", { amount: 5_000 }),
      through("pay_invoice", { amount: 500 }),
      "Done.",
    ];
    const clerk = defineAgent({
      name: "clerk",
      model: scriptedModel(answers),
      tools: deferredTools(many),
      plugins: [limits],
    });
    const stores = memoryStores();
    const runtime = await createRuntime({ agents: [clerk], stores });
    const agent = await runtime.agent("clerk");
    await agent.start();
    const turn = agent.executeTurn("Go.");
    await turn.settled;
    expect(seen).toEqual(['pay_invoice{"amount":5000}', 'pay_invoice{"amount":500}']);
    const [request] = await runtime.requests();
    expect(request).toMatchObject({ kind: "approval", name: "pay_invoice", arguments: { amount: 500 } });
    await runtime.decide(request?.requestId ?? "", { verdict: "approved", by: "ada" });
    expect((await turn.result).text).toBe("Done.");
    const texts = (await agent.getMessages())
      .filter(({ role }) => role === "tool")
      .map(({ content }) => textOf(content));
    expect(texts).toEqual([expect.stringContaining("too much"), "paid 500"]);
    await runtime.shutdown();
  });

  test("hooks see the tool that a call means, and their arguments replace the inner ones", async () => {
    const clerk = defineAgent({
      name: "clerk",
      model: scriptedModel([through("pay_invoice", { amount: 1 }), "Done."]),
      tools: deferredTools(many),
      hooks: {
        beforeTools: (draft) => {
          for (const { callId, name, arguments: text } of draft.calls) {
            expect([name, text]).toEqual(["pay_invoice", '{"amount":1}']);
            draft.changeArguments(callId, { amount: 2 });
          }
        },
      },
    });
    const runtime = await createRuntime({ agents: [clerk] });
    const agent = await runtime.agent("clerk");
    await agent.start();
    await agent.executeTurn("Go.").result;
    expect((await agent.getMessages()).map(({ content }) => textOf(content))).toContain("paid 2");
    await runtime.shutdown();
  });

  test("a request that another process decides runs the same tool; a replay is equal", async () => {
    const stores = memoryStores();
    const first = await createRuntime({ agents: [deferringClerk([through("pay_invoice", { amount: 900 })])], stores });
    const asking = await first.agent("clerk", { agentId: "clerk-1" });
    await asking.start();
    await asking.executeTurn("Go.").settled;
    await first.shutdown();
    const second = await createRuntime({ agents: [deferringClerk(["Done."])], stores });
    const agent = await second.agent("clerk", { agentId: "clerk-1" });
    await agent.start();
    const [request] = await second.requests();
    const ended = nextEvent(second, ({ type }) => type === "turn.completed");
    await second.decide(request?.requestId ?? "", { verdict: "approved", by: "ada" });
    await ended;
    expect((await agent.getMessages()).map(({ content }) => textOf(content))).toContain("paid 900");
    await second.shutdown();
    const result = await replay({ stores, agentId: "clerk-1" }, { agents: deferringClerk([]) });
    expect(result).toMatchObject({ isEqual: true });
  });

  test("tools of MCP servers can be deferred", async () => {
    const desk = await openDesk("stdio modern");
    const { tools } = await connected({ name: "desk", ...desk.options });
    const { agent } = await callerOf(deferredTools(tools), [call("desk__echo", { text: "hello" })]);
    await agent.executeTurn("go").result;
    expect(await toolTextsOf(agent)).toEqual(["echo: hello"]);
  });

  test("search finds tools by name, description and parameters, with their schemas", async () => {
    const [byName, byWords, exact, nothing] = await resultsOf(
      [search("payInvoice"), search("transfer money for the invoices"), search("archive_42"), search("weather")],
      { tools: deferredTools(many) },
    );
    expect(firstTool(byName)).toMatchObject({ name: "pay_invoice", parameters: { required: ["amount"] } });
    expect(firstTool(byWords).name).toBe("pay_invoice");
    expect(firstTool(exact).name).toBe("archive_42");
    expect(nothing).toBe("No tool fits. Search with other words.");
  });

  test("a name that call_tool does not have is refused with the nearest ones (S16)", async () => {
    const results = await resultsOf(
      [
        call("pay_invoic", { amount: 1 }),
        call("call_tool", { name: "pay_invoice", arguments: { amount: 1 } }),
        call("__proto__", {}),
        { name: "call_tool", arguments: { arguments: {} } },
        { name: "call_tool", arguments: { name: "archive_1" } },
      ],
      { tools: deferredTools(many) },
    );
    expect(results[0]).toContain("pay_invoice");
    expect(results[1]).toContain('no tool named "call_tool"');
    expect(results[2]).toContain("no tool named");
    expect(results[3]).toContain("name");
    expect(results[4]).toBe("shelf 1");
  });

  test("wrong tools and names are refused", () => {
    expect(() => deferredTools([{}] as never)).toThrow("a tool made by defineTool() or mcp()");
    expect(() => deferredTools(undefined as never)).toThrow("a list of tools");
    expect(() => deferredTools(many, { keep: ["pay"] })).toThrow(
      'keep has "pay", which is not the name of a tool; the nearest',
    );
  });
});
