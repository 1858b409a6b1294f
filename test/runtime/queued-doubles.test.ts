import { array, assert, asyncProperty, constantFrom, nat, record } from "fast-check";
import { expect, it } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, type EffectClass } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { amount } from "../support/full.ts";
import { orderFault } from "../support/journal-probes.ts";
import { UnrulyQueues } from "../support/unruly-queues.ts";
import { calling } from "../support/turn-probes.ts";

const CALLS = 3;

/** Delivers a job, delivers it twice at once, gives it up, or does both at once. */
const moveArbitrary = record({
  act: constantFrom("give", "give", "give", "double", "giveUp", "race"),
  index: nat({ max: 20 }),
});
type Move = { readonly act: string; readonly index: number };

async function make(queues: UnrulyQueues, { act, index }: Move): Promise<void> {
  if (act === "give") return await queues.give(index);
  if (act === "giveUp") return await queues.giveUp(index);
  const other = act === "double" ? queues.give(index) : queues.giveUp(index);
  await Promise.all([queues.give(index), other]);
}

it.each(["once", "keyed"] as const)(
  "F13: a %s call has one result, even if jobs or results are duplicated, late or given up",
  async (effect) => {
    await assert(
      asyncProperty(array(moveArbitrary, { maxLength: 12 }), async (moves) => {
        await playOnce(effect, moves);
      }),
      { numRuns: amount(40, 7) },
    );
  },
);

async function playOnce(effect: EffectClass, moves: readonly Move[]): Promise<void> {
  const queues = new UnrulyQueues();
  const begun = new Map<string, number>();
  const browse = defineTool({
    name: "browse",
    description: "Browses.",
    parameters: z.object({}),
    queue: "browser",
    effect,
    execute(_args, { callId }) {
      begun.set(callId, (begun.get(callId) ?? 0) + 1);
      return "read";
    },
  });
  const model = scriptedModel([calling(...Array.from({ length: CALLS }, () => "browse")), "the end"]);
  const runtime = await createRuntime({ agents: [defineAgent({ name: "worker", model, tools: [browse] })], queues });
  try {
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const turn = agent.executeTurn("go");
    let added = 0;
    for await (const { type } of turn) if (type === "tool.started" && ++added === CALLS) break;
    while (queues.jobs.length < CALLS) await new Promise(setImmediate);
    for (const move of moves) await make(queues, move);
    // Finally each job is delivered.
    for (let index = 0; index < CALLS; index += 1) await queues.give(index);
    const result = await turn.result;
    expect(result).toMatchObject({ status: "completed", text: "the end", toolCalls: CALLS });
    for (let index = 0; index < CALLS; index += 1) await make(queues, { act: "race", index });
    const messages = await agent.getMessages();
    expect(messages.filter(({ role }) => role === "tool")).toHaveLength(CALLS);
    expect(orderFault(messages)).toBeUndefined();
    const again = [...begun.values()].filter((count) => count > 1);
    expect(effect === "once" ? again : []).toEqual([]);
  } finally {
    await runtime.shutdown();
  }
}
