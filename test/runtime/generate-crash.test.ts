import { expect, it } from "vitest";
import { z } from "zod";
import { type AgentOptions, askUser, defineAgent, defineTool, type EffectClass, textOf } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const side = { messages: [{ role: "user", content: "sum up" }] } as const;

/** An agent that asks a person and also calls `generate()`; its first process dies during that call. */
interface Case {
  readonly title: string;
  /** `life` is 1 in the process that dies. */
  readonly define: (life: number) => Pick<AgentOptions, "tools" | "hooks">;
}

/** A tool that calls `generate()` if `generates` is true. */
function send(effect: EffectClass, generates: boolean) {
  return defineTool({
    name: "send",
    description: "Sends a summary.",
    parameters: z.object({}),
    effect,
    execute: async (_args, run) => (generates ? (await run.generate(side)).content : "nothing to sum up"),
  });
}

const cases: readonly Case[] = [
  { title: "a tool that is never repeated", define: () => ({ tools: [send("once", true), askUser()] }) },
  {
    title: "a tool that behaves differently when it is repeated",
    define: (life) => ({ tools: [send("none", life === 1), askUser()] }),
  },
  ...(["beforeLlm", "beforeEachTool"] as const).map((hook) => ({
    title: `a hook (${hook}) that behaves differently when it is repeated`,
    define: (life: number): Pick<AgentOptions, "tools" | "hooks"> => ({
      tools: [send("none", false), askUser()],
      hooks: {
        [hook]: async (_draft: unknown, run: { generate(input: typeof side): Promise<unknown> }) => {
          if (life === 1) await run.generate(side);
        },
      },
    }),
  })),
];

function ask(content: string) {
  return { messages: [{ role: "user" as const, content }] };
}

describeRuntimes("generate() after a crash", (stage) => {
  it.each(cases)("its call is settled, so that the turn comes to rest: $title", async ({ define }) => {
    const gate = createGate<string>();
    const calls = { toolCalls: [{ name: "send" }, { name: "ask_user", arguments: { question: "Well?" } }] };
    const model = scriptedModel(({ messages }) => {
      if (textOf(messages[0]?.content ?? "") === "sum up") return gate.pass();
      return messages.at(-1)?.role === "tool" ? "the end" : calls;
    });
    const open = (life: number) =>
      stage().openProcess({ agents: [defineAgent({ name: "worker", model, ...define(life) })] });
    const first = await open(1);
    const before = await first.runtime.agent("worker", { agentId: "worker-1", budget: { maxTokens: 90_000 } });
    await before.start();
    await before.executeTurn("go").id;
    await gate.reached();
    first.kill();
    stage().expireLeases();

    const { runtime } = await open(2);
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const turn = agent.turn("worker-1#1");
    const rest = await turn.settled;
    expect(rest).toMatchObject({ status: "waiting", reason: "request" });
    const [account] = await stage().look().accounts("default", "worker-1");
    expect(account).toMatchObject({ reserved: { tokens: 0 } });
    expect(account?.unconfirmed.tokens).toBeGreaterThan(0);
    const made = await entriesOfType(stage().look(), "worker-1", "generate.requested");
    expect(await entriesOfType(stage().look(), "worker-1", "generate.failed")).toHaveLength(made.length);
    for (const { requestId } of await agent.requests()) {
      await runtime.decide(requestId, { verdict: "answered", result: "yes" });
    }
    expect(await turn.result).toMatchObject({ status: "completed", text: "the end" });
  });

  it("code that continues from its note gets the journalled answers of the calls that are left", async () => {
    const gate = createGate<string>();
    const asked: string[] = [];
    const define = (life: number) => {
      const model = scriptedModel(({ messages }) => {
        const text = textOf(messages[0]?.content ?? "");
        if (text === "go") return messages.at(-1)?.role === "tool" ? "the end" : { toolCalls: [{ name: "send" }] };
        asked.push(text);
        return `answer ${asked.length}`;
      });
      const sender = defineTool({
        name: "send",
        description: "Sends two answers.",
        parameters: z.object({}),
        effect: "none",
        execute: async (_args, run) => {
          const first = typeof run.noted === "string" ? run.noted : (await run.generate(ask("first"))).content;
          await run.note(first);
          const second = (await run.generate(ask("second"))).content;
          // Commits the answer, which would otherwise be lost with the process.
          if (life === 1) await run.note(first);
          return `${first}, ${second}, ${life === 1 ? await gate.pass() : "twice"}`;
        },
      });
      return defineAgent({ name: "worker", model, tools: [sender] });
    };
    const first = await stage().openProcess({ agents: [define(1)] });
    const before = await first.runtime.agent("worker", { agentId: "worker-1" });
    await before.start();
    await before.executeTurn("go").id;
    await gate.reached();
    first.kill();
    stage().expireLeases();

    const second = await stage().openProcess({ agents: [define(2)] });
    const agent = await second.runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    await agent.turn("worker-1#1").result;
    expect(await toolTextsOf(agent)).toEqual(["answer 1, answer 2, twice"]);
    expect(asked).toEqual(["first", "second"]);
  });
});
