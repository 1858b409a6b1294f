import { expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentOptions,
  defineAgent,
  defineTool,
  ModelError,
  reactHistory,
  subagent,
  type TroupeEvent,
} from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { elapse } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, eventsOfTurn } from "../support/turn-probes.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});
const away = (retryable = true) =>
  new ModelError("the provider is away", { retryable, mayHaveBeenSent: false, retryAfterMs: 0 });

/** Names of completed calls without a start event. */
function unbegun(events: readonly TroupeEvent[]): readonly string[] {
  const begun = new Set<string | null>();
  const missing: string[] = [];
  for (const event of events) {
    if (event.type === "tool.started" || event.type === "subagent.spawned") begun.add(event.callId);
    if (event.type === "tool.completed" && !begun.has(event.callId)) missing.push(event.name);
  }
  return missing;
}

const warnings = (events: readonly TroupeEvent[]) =>
  events.filter((event) => event.type === "warning" && event.code === "messages_limit");

describeRuntimes("how turns and calls end", (stage) => {
  async function started(script: ModelScript, options: Partial<AgentOptions> = {}) {
    const model = scriptedModel(script);
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", tools: [look], ...options, model })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    return { agent, model };
  }

  it("a turn whose attempts are used up fails with retry_limit and keeps the last error (S6, L7)", async () => {
    const { agent, model } = await started(() => ({ error: away() }), { maxModelAttempts: 2 });
    const turn = agent.executeTurn("go");
    const told = eventsOfTurn(turn);
    const result = await elapse(stage().clock, turn.result);
    expect(model.calls).toHaveLength(2);
    expect(result).toMatchObject({ status: "failed", stopReason: "retry_limit", stop: null });
    expect(result.error?.message).toContain("the provider is away");
    expect((await told).at(-1)).toMatchObject({ type: "turn.failed", stopReason: "retry_limit" });
    expect(agent.state.status).toBe("failed");
  });

  it("an error that is not retryable has the stop reason error, with attempts left", async () => {
    const { agent } = await started(() => ({ error: away(false) }));
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "failed", stopReason: "error" });
  });

  it("each tool.completed has a start event, for tools on the agent's own context too", async () => {
    const child = defineAgent({ name: "child", model: scriptedModel("done") });
    const { agent } = await started(
      [
        calling("look", "load_history", "list_tool_calls", { name: "child", arguments: { input: "go" } }),
        calling({ name: "load_tool_results", arguments: { callIds: ["nobody's"] } }, { name: "look" }),
        "done",
      ],
      { tools: [look, subagent(child)], history: reactHistory() },
    );
    const events = await eventsOfTurn(agent.executeTurn("go"));
    const own = events.filter(({ agentId }) => agentId === "worker-1");
    expect(unbegun(own)).toEqual([]);
    const internal = own.filter(
      (event) => event.type !== "call.delta" && "name" in event && event.name.startsWith("lo") && event.name !== "look",
    );
    expect(internal.map(({ type }) => type)).toEqual(["tool.started", "tool.completed", "tool.started", "tool.failed"]);
  });

  it("a call that was refused before it started has only tool.failed", async () => {
    const { agent } = await started([calling({ name: "list_tool_calls", arguments: { limit: 0 } }), "done"], {
      history: reactHistory(),
    });
    const events = await eventsOfTurn(agent.executeTurn("go"));
    expect(events.filter(({ type }) => type.startsWith("tool.")).map(({ type }) => type)).toEqual(["tool.failed"]);
  });

  it("the turn whose answer exceeds maxMessages emits the warning, not the next turn", async () => {
    const { agent } = await started(["one", "two"], { maxMessages: 3 });
    expect(warnings(await eventsOfTurn(agent.executeTurn("go")))).toEqual([]);
    const told = await eventsOfTurn(agent.executeTurn("on"));
    expect(warnings(told)).toEqual([
      expect.objectContaining({ message: expect.stringContaining("has 4 messages, the limit is 3") }),
    ]);
  });
});
