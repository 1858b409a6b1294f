// A call of generate() that was in flight when its process died, and that nobody asks for again: the turn does not wait for it.
import { expect, it } from "vitest";
import { z } from "zod";
import { askUser, defineAgent, defineTool, type Hooks } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const thought = { messages: [{ role: "user", content: "think" }] } as const;

/** An agent that asks a person something beside what its code does; nobody ever answers `think`. */
function worker(code: { readonly tool?: boolean; readonly hooks?: Hooks }) {
  const think = defineTool({
    name: "think",
    description: "Thinks.",
    parameters: z.object({}),
    execute: async (_, run) => (await run.generate(thought)).content,
  });
  const model = scriptedModel(({ messages }) => {
    const said = messages.at(-1)?.content;
    if (said === "think") return { delayUntil: new Promise(() => undefined) };
    if (messages.at(-1)?.role === "tool") return "the end";
    const ask = { name: "ask_user", arguments: { question: "Which?" } };
    return { toolCalls: code.tool === true ? [{ name: "think" }, ask] : [ask] };
  });
  return defineAgent({
    name: "worker",
    model,
    tools: [think, askUser()],
    ...(code.hooks ? { hooks: code.hooks } : {}),
  });
}

let times = 0;
const onlyTheFirstTime: Hooks = {
  beforeLlm: async (_, run) => {
    times += 1;
    if (times === 1) await run.generate(thought);
  },
};

describeRuntimes("a side call that is not asked for again", (stage) => {
  it.each([
    ["by a tool that is not repeated", { tool: true }],
    ["by a hook that does something else now", { hooks: onlyTheFirstTime }],
  ] as const)("%s", async (_, code) => {
    times = 0;
    const first = await stage().openProcess({ agents: [worker(code)] });
    const agent = await first.runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    agent.executeTurn("go");
    const look = stage().look();
    const requested = () => entriesOfType(look, "worker-1", "generate.requested");
    await expect.poll(requested, { timeout: 30_000 }).toHaveLength(1);
    first.kill();
    stage().expireLeases();
    const second = await stage().open({ agents: [worker(code)] });
    const taken = await second.agent("worker", { agentId: "worker-1" });
    await taken.start();
    const now = async () => (await taken.openTurn()?.current())?.status;
    await expect.poll(now, { timeout: 30_000 }).toBe("waiting");
    const [request] = await second.requests();
    await second.decide(request?.requestId ?? "", { verdict: "answered", result: "this" });
    expect(await taken.turn("worker-1#1").result).toMatchObject({ status: "completed", text: "the end" });
    const [account] = await look.accounts("default", "worker-1");
    expect(account).toMatchObject({ reserved: { tokens: 0 }, activeCount: 0 });
  });
});
