import { expect, test } from "vitest";
import { type Message } from "../../src/index.ts";
import {
  type AgentState,
  agentStateJson,
  agentStateSchema,
  type EntryOf,
  stepsOf,
  viewAgentState,
  wasForceStopped,
} from "../../src/state/index.ts";
import { scenarios } from "../machines/scenarios.ts";
import { every, rows } from "../support/full.ts";
import { entriesOfType } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";

/** The message of the conversation with this id; there must be exactly one. */
function messageIn({ context }: AgentState, id: string): Message | undefined {
  return context.messages.find((message) => message.id === id);
}

describeRuntimes(
  "the state of agents after real turns (rows S1 to S4, S9, S10)",
  (stage) => {
    test.each(rows(scenarios, every(4)))("$name: matches the journal", async ({ run }) => {
      const runtime = await run(stage(), {});
      for (const { agentId, createdAt } of await runtime.list()) {
        const state = await (await runtime.find(agentId)).getState();
        const ended = (await entriesOfType(runtime.stores, agentId, "turn.ended")).at(-1) as EntryOf<"turn.ended">;
        const view = viewAgentState(state);
        const reports = await entriesOfType(runtime.stores, agentId, "child.reported");
        // A report between two turns changes the conversation.
        const updatedAt = Math.max(ended.at, ...reports.map(({ at }) => at));
        expect(view).toMatchObject({ agentId, createdAt, updatedAt, executionCount: ended.number });
        expect(view).toMatchObject({ status: ended.outcome, stopReason: ended.stopReason, stepCount: ended.steps });
        expect(view.usage).toEqual(ended.usage);
        expect(view.execution).toMatchObject({ executionId: ended.turnId, completedAt: ended.at, currentStep: null });
        expect(wasForceStopped(ended.stopReason)).toBe(ended.outcome !== "completed");
        expect(agentStateSchema.parse(state)).toEqual(state);
        expect(agentStateJson.fromJSON(JSON.stringify(agentStateJson.toJSON(state)))).toEqual(state);
      }
    });

    test.each(rows(scenarios, every(4)))(
      "$name: a step's messages are in the conversation and carry its tags (S4)",
      async ({ run }) => {
        const runtime = await run(stage(), {});
        for (const { agentId } of await runtime.list()) {
          const state = await (await runtime.find(agentId)).getState();
          const steps = state.execution ? stepsOf(state.execution) : [];
          for (const { id, inference, inputMessageIds, outputMessageIds, toolExecutions } of steps) {
            const isFinal = toolExecutions.length === 0;
            const wanted = { step_id: id, execution_id: state.execution?.executionId, agent_id: agentId };
            const output = outputMessageIds.map((messageId) => messageIn(state, messageId)?.metadata);
            expect(output).toHaveLength(inference ? 1 + toolExecutions.length : 0);
            expect(output).toEqual(output.map(() => (isFinal ? wanted : { ...wanted, is_trace: true })));
            expect(inputMessageIds.map((messageId) => messageIn(state, messageId)?.id)).toEqual(inputMessageIds);
          }
        }
      },
    );

    test.each(rows(scenarios, every(4)))(
      "$name: getMessages({ withoutTrace: true }) returns only the messages outside the trace (S4)",
      async ({ run }) => {
        const runtime = await run(stage(), {});
        const agent = await runtime.find("desk");
        const all = (await agent.getState()).context.messages;
        expect(await agent.getMessages()).toEqual(all);
        const plain = all.filter(({ metadata }) => metadata?.is_trace !== true);
        expect(await agent.getMessages({ withoutTrace: true })).toEqual(plain);
        expect(plain.filter(({ role }) => role === "tool")).toEqual([]);
      },
    );

    test.each(rows(scenarios, every(4)))("$name: every message is new to at most one step", async ({ run }) => {
      const runtime = await run(stage(), {});
      const { execution, context } = await (await runtime.find("desk")).getState();
      const shown = execution ? stepsOf(execution).flatMap(({ inputMessageIds }) => inputMessageIds) : [];
      expect(new Set(shown).size).toBe(shown.length);
      const order = context.messages.map(({ id }) => id).filter((id) => shown.includes(id));
      expect([...shown].sort()).toEqual([...order].sort());
    });
  },
  ["memory"],
);
