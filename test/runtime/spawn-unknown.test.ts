import { expect, it, vi } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  createAgent,
  createAgentLoop,
  defineAgent,
  defineTool,
  InvalidInputError,
  NotFoundError,
  textOf,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

function worker(text = "worked"): AgentDefinition {
  return defineAgent({ name: "worker", model: scriptedModel(text) });
}

/** An agent whose tool runs the child and returns its answer. */
function options(child: unknown, ends: "await" | "result" = "await") {
  const delegate = defineTool({
    name: "delegate",
    description: "Has a worker do it.",
    parameters: z.object({}),
    execute: async (_args, run) => {
      const spawned = await run.spawn(child, "do it", { key: "one" });
      return ends === "await" ? run.await(spawned) : (await spawned.result).text;
    },
  });
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    return last?.role === "tool" ? textOf(last.content) : calling("delegate");
  });
  return { model, tools: [delegate] };
}

describeRuntimes(
  "definitions passed to spawn()",
  (stage) => {
    it.each(["await", "result"] as const)(
      "a definition that the runtime does not have is refused (%s)",
      async (ends) => {
        const runtime = await stage().open({ agents: [defineAgent({ name: "lead", ...options(worker(), ends) })] });
        const agent = await runtime.agent("lead", { agentId: "l" });
        await agent.start();
        const { text, status } = await agent.executeTurn("go").result;
        expect(status).toBe("completed");
        expect(text).toContain('run.spawn(): this runtime does not know the definition "worker"');
        expect(await runtime.list()).toHaveLength(1);
        await expect(agent.spawn(worker(), "go", { key: "k" })).rejects.toThrow(NotFoundError);
        expect(await runtime.list()).toHaveLength(1);
      },
    );

    it.each([true, false])(
      "the refusal reports that nothing was done if spawn() was the tool's first action: %s",
      async (isFirst) => {
        const delegate = defineTool({
          name: "delegate",
          description: "Has a worker do it.",
          parameters: z.object({}),
          execute: async (_args, run) => {
            // An earlier action could have been a payment.
            if (!isFirst) await Promise.resolve();
            return run.await(await run.spawn(worker(), "do it", { key: "one" }));
          },
        });
        const { model } = options(worker());
        const runtime = await stage().open({ agents: [defineAgent({ name: "lead", model, tools: [delegate] })] });
        const agent = await runtime.agent("lead", { agentId: "l" });
        await agent.start();
        const { text } = await agent.executeTurn("go").result;
        expect(text).toContain('run.spawn(): this runtime does not know the definition "worker"');
        expect(text.includes("Nothing was done.")).toBe(isFirst);
        expect(text.includes("is not known")).toBe(!isFirst);
      },
    );

    it("another definition with a known name is refused, and so is a value that is not a definition", async () => {
      const runtime = await stage().open({ agents: [defineAgent({ name: "lead", ...options(worker()) }), worker()] });
      const agent = await runtime.agent("lead", { agentId: "l" });
      await agent.start();
      expect((await agent.executeTurn("go").result).text).toContain('this runtime has a different definition "worker"');
      await expect(agent.spawn(worker(), "go", { key: "k" })).rejects.toThrow(InvalidInputError);
      await expect(agent.spawn({ name: "worker" } as never, "go", { key: "k" })).rejects.toThrow(InvalidInputError);
      expect(await runtime.list()).toHaveLength(1);
    });

    it("a process that recovers without the definition of an open child warns about it", async () => {
      const gate = createGate<string>();
      const child = defineAgent({ name: "worker", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
      const lead = defineAgent({ name: "lead", ...options(child) });
      const first = await stage().openProcess({ agents: [lead, child] });
      const agent = await first.runtime.agent("lead", { agentId: "l" });
      await agent.start();
      agent.executeTurn("go");
      await gate.reached();
      first.kill();
      stage().expireLeases();
      const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
      const second = await stage().open({ agents: [lead] });
      await second.recover();
      expect(warned.mock.calls.map(([message]) => String(message)).join()).toContain(
        'this runtime does not know the definition "worker"',
      );
      gate.open("late");
    });
  },
  ["memory", "sqlite"],
);

it("createAgent() and createAgentLoop() accept further definitions", async () => {
  const child = worker();
  const agent = await createAgent({ ...options(child), agents: [child] });
  await agent.start();
  expect((await agent.executeTurn("go").result).text).toBe("worked");
  expect((await (await agent.spawn(child, "go", { key: "k" })).turn.result).text).toBe("worked");
  await agent.runtime.shutdown();
  const loop = createAgentLoop(defineAgent({ name: "lead", ...options(child) }), { agents: [child] });
  expect((await loop.executeTurn([{ role: "user", content: "go" }]).result).text).toBe("worked");
  expect(() => createAgentLoop(child, { agents: [worker()] })).toThrow('two agents are named "worker"');
  expect(() => createAgentLoop({} as AgentDefinition)).toThrow(InvalidInputError);
});
