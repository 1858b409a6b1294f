import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentOptions,
  AgentStopError,
  defineAgent,
  defineTool,
  type Message,
  textOf,
} from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { orderFault } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const noop = defineTool({
  name: "noop",
  description: "Does nothing.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "done",
});

const textsOf = (messages: readonly Message[] = []): string[] => messages.map(({ content }) => textOf(content));

/** Calls stop() before every model call but the first. */
const second = (draft: { readonly messages: readonly unknown[]; stop(reason: string): void }): void => {
  if (draft.messages.length > 1) draft.stop("no further step");
};

describeRuntimes("hooks that stop or fail a turn", (stage) => {
  async function started(script: ModelScript, options: Partial<AgentOptions>) {
    const model = scriptedModel(script);
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", ...options, model })] });
    const agent: Agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    return { agent, model };
  }

  it.each([
    { hook: "beforeLlm" as const, calls: 0 },
    { hook: "afterTools" as const, calls: 1 },
  ])(
    "H4: a $hook that throws fails the turn with that error; the agent accepts a new turn",
    async ({ hook, calls }) => {
      let isBroken = true;
      const { agent, model } = await started([calling("noop"), calling("noop"), "the end"].slice(1 - calls), {
        tools: [noop],
        hooks: {
          [hook]() {
            if (isBroken) throw new RangeError("the hook is broken");
          },
        },
      });
      const result = await agent.executeTurn("go").result;
      expect(result).toMatchObject({ status: "failed", stopReason: "error" });
      expect(result.error).toMatchObject({ code: "RangeError", message: "the hook is broken" });
      expect(model.calls).toHaveLength(calls);
      expect(agent.state).toMatchObject({ status: "failed", error: { message: "the hook is broken" } });
      expect(orderFault(await agent.getMessages())).toBeUndefined();
      isBroken = false;
      expect((await agent.executeTurn("again").result).text).toBe("the end");
      expect(agent.state.status).toBe("ready");
    },
  );

  it("S11: stop() of afterTools ends the turn after its round", async () => {
    const { agent, model } = await started([calling("noop"), "never"], {
      tools: [noop],
      plugins: [{ name: "guard", hooks: { afterTools: (draft) => draft.stop("seen enough") } }],
    });
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "stop_requested", steps: 1, toolCalls: 1 });
    expect(result.signal).toMatchObject({ message: "seen enough", source: "hook:guard" });
    expect(model.calls).toHaveLength(1);
    expect(agent.state.status).toBe("ready");
  });

  it.each(["beforeLlm", "afterTools"] as const)(
    "S11: AgentStopError of %s ends the turn as stop_requested",
    async (hook) => {
      const { agent } = await started([calling("noop"), "never"], {
        tools: [noop],
        plugins: [
          {
            name: "guard",
            hooks: {
              [hook]: () => {
                throw new AgentStopError("not today");
              },
            },
          },
        ],
      });
      const result = await agent.executeTurn("go").result;
      expect(result).toMatchObject({ status: "stopped", stopReason: "stop_requested", error: null });
      expect(result.signal).toMatchObject({ message: "not today", source: "hook:guard" });
      expect(agent.state.status).toBe("ready");
      expect(orderFault(await agent.getMessages())).toBeUndefined();
    },
  );

  it("S11: stop() of beforeLlm ends the turn before the call is made and charged", async () => {
    const { agent, model } = await started([{ text: "one look", toolCalls: [{ name: "noop" }] }, "never"], {
      tools: [noop],
      plugins: [{ name: "guard", hooks: { beforeLlm: second } }],
    });
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "stop_requested", steps: 1, toolCalls: 1 });
    expect(result).toMatchObject({ text: "one look", signal: { message: "no further step", source: "hook:guard" } });
    expect(model.calls).toHaveLength(1);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("S11: stop() of afterLlm ends the turn after its step, and the answer's tool calls are not started", async () => {
    const { agent, model } = await started([{ text: "one more look", toolCalls: [{ name: "noop" }] }, "never"], {
      tools: [noop],
      plugins: [{ name: "guard", hooks: { afterLlm: (draft) => draft.stop("last step") } }],
    });
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "stop_requested", steps: 1, toolCalls: 0 });
    expect(result).toMatchObject({ text: "one more look", signal: { message: "last step", source: "hook:guard" } });
    expect(model.calls).toHaveLength(1);
    expect(textsOf((await agent.getMessages()).slice(-1))).toEqual(["Interrupted: last step"]);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("S5: continue() of afterTools prevents the turn from stopping, for one step", async () => {
    let rounds = 0;
    const halt = defineTool({
      name: "halt",
      description: "Halts.",
      parameters: z.object({}),
      effect: "none",
      execute: () => {
        throw new AgentStopError("halt");
      },
    });
    const { agent, model } = await started([calling("halt"), calling("noop"), "never"], {
      tools: [halt, noop],
      hooks: {
        afterTools(draft) {
          rounds += 1;
          if (rounds === 1) draft.continue();
        },
      },
    });
    const result = await agent.executeTurn("go").result;
    expect(model.calls).toHaveLength(2);
    expect(result).toMatchObject({ status: "stopped", stopReason: "stop_requested", steps: 2 });
  });
});
