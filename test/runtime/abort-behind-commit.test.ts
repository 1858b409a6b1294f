import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentOptions,
  defineAgent,
  defineTool,
  subagent,
  type Tool,
  type ToolDefinition,
} from "../../src/index.ts";
import type { EntryType } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOf, entriesOfType, loopTurns, orderFault } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const aWhile = 20;
const nothing = z.object({});

function tool(options: Partial<ToolDefinition<typeof nothing>> & { readonly name: string }): Tool<never> {
  return defineTool({
    description: "Does something.",
    effect: "keyed",
    parameters: nothing,
    execute: () => "done",
    ...options,
  });
}

/** What to run before the first matching store call. */
interface Held {
  readonly before: "commit" | "postCallEnd";
  /** Type of an entry of the commit. */
  readonly of?: EntryType;
  readonly first: () => Promise<unknown>;
}

/** Slow stores, as over a network: `first` runs before they answer the call. */
function slow(stores: Stores, { before, of, first }: Held): Stores {
  let isDone = false;
  const fits = (given: unknown): boolean =>
    of === undefined ||
    (given as Parameters<Stores["commit"]>[0]).some(({ entries }) => entries.some(({ type }) => type === of));
  return new Proxy(stores, {
    get: (all, name: keyof Stores) => {
      const member = all[name];
      if (typeof member !== "function") return member;
      const call = member as (...given: unknown[]) => unknown;
      if (name !== before) return call.bind(all);
      return async (...given: unknown[]): Promise<unknown> => {
        if (!isDone && fits(given[0])) {
          isDone = true;
          await first();
        }
        return await call.apply(all, given);
      };
    },
  });
}

describeRuntimes("interrupts during a store call", (stage) => {
  async function open(options: Omit<AgentOptions, "name">, held: Held): Promise<Agent> {
    const agents = [defineAgent({ name: "worker", ...options })];
    const runtime = await stage().open({ agents, through: (stores) => slow(stores, held) });
    const agent = await runtime.agent("worker", { agentId: "w" });
    await agent.start();
    return agent;
  }

  it("F22, F23: an abort behind the commit of a round's intents gives each call one result and starts nothing", async () => {
    const hand = defineAgent({ name: "hand", model: scriptedModel("done") });
    const asked = ["helper", "charge", "single"].map((name) => ({
      name,
      arguments: name === "charge" ? {} : { input: "x" },
    }));
    const agent = await open(
      {
        model: scriptedModel([calling(...asked), "again"]),
        tools: [
          tool({ name: "charge" }),
          subagent(hand, { name: "helper" }),
          // It queues until the commit decides whether the helper starts.
          subagent(hand, { name: "single", policy: { maxConcurrent: 1 } }),
        ],
      },
      {
        before: "commit",
        of: "child.spawned",
        first: async () => {
          void agent.abort("enough");
          await loopTurns(aWhile);
        },
      },
    );
    expect((await agent.executeTurn("go").result).status).toBe("stopped");
    const entries = await entriesOf(stage().look(), "w");
    const told = entries.flatMap((entry) => {
      if (entry.type === "tool.settled") return [`${entry.callId} ended`];
      return entry.type === "intent.refused" && entry.callId !== undefined ? [`${entry.callId} refused`] : [];
    });
    expect(told).toEqual(["w#1:1:0 refused", "w#1:1:1 refused", "w#1:1:0 ended", "w#1:1:1 ended", "w#1:1:2 ended"]);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    expect((await agent.executeTurn("again").result).text).toBe("again");
  });

  it("H10: a queued call that starts while the turn withdraws another call is withdrawn too", async () => {
    const [running, approving, begun] = [createGate<string>(), createGate<boolean>(), createGate<string>()];
    const agent = await open(
      {
        model: scriptedModel([calling("first", "second")]),
        tools: [
          tool({ name: "first", queue: "q", execute: (_given, run) => running.pass(run.signal) }),
          tool({
            name: "second",
            queue: "r",
            effect: "once",
            needsApproval: () => approving.pass(),
            execute: (_given, run) => begun.pass(run.signal),
          }),
        ],
      },
      {
        before: "postCallEnd",
        first: async () => {
          approving.open(false);
          await begun.reached();
        },
      },
    );
    const turn = agent.executeTurn("go", { budget: { deadline: stage().clock.now() + 1_000 } });
    await Promise.all([running.reached(), approving.reached()]);
    stage().clock.advance(1_001);
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
    // A worker had started the call, so its outcome must not be "not run".
    const ends = await entriesOfType(stage().look(), "w", "tool.settled");
    const outcomes = Object.fromEntries(ends.map(({ name, outcome }) => [name, outcome]));
    expect(outcomes).toEqual({ first: "interrupted", second: "outcome_unknown" });
  });

  it("a warning that the hooks of several calls emit behind an undecided intent is stored once", async () => {
    const agent = await open(
      {
        model: scriptedModel([calling("quick", "odd", "odd"), "the end"]),
        tools: [tool({ name: "quick" }), tool({ name: "odd" })],
        hooks: {
          beforeEachTool: async ({ call }, run) => {
            if (call.name === "quick") return;
            await loopTurns(3);
            run.emitWarning("odd_call", "it is odd");
          },
        },
      },
      { before: "commit", of: "tool.started", first: () => loopTurns(aWhile) },
    );
    expect((await agent.executeTurn("go").result).text).toBe("the end");
    expect(await entriesOfType(stage().look(), "w", "warning")).toHaveLength(1);
  });
});
