import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  createRuntime,
  dropOldest,
  fullHistory,
  type HistoryCompiler,
  type Hooks,
  memoryStores,
  reactHistory,
  windowHistory,
  withoutTraces,
} from "../../src/index.ts";
import { type ClerkOptions, clerkOn, lastThree, thinker } from "../support/strict-clerk.ts";
import { startStrictServer } from "../support/strict-thinking.ts";

const compilers: Readonly<Record<string, () => HistoryCompiler>> = {
  full: fullHistory,
  window: () => windowHistory(4, { upTo: 4 }),
  short: () => windowHistory(1),
  lastThree: () => lastThree,
  withoutTraces,
  react: () => reactHistory({ contextWindowSize: 2 }),
};

const deed = fc.record({
  /** The call before which it happens. */
  at: fc.nat({ max: 9 }),
  does: fc.constantFrom("edit", "remove", "add", "add system"),
  message: fc.nat(),
});

/** One process: its definition may differ from the one before. */
const life = fc.record({
  protocol: fc.constantFrom("messages" as const, "chat" as const),
  model: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constant(1) }),
  history: fc.oneof(
    { weight: 2, arbitrary: fc.constant("full") },
    { weight: 3, arbitrary: fc.constantFrom(...Object.keys(compilers)) },
  ),
  /** `maxMessages` of a compaction; 0 for none. */
  compacts: fc.constantFrom(0, 0, 3, 6),
  changesInstructions: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.boolean() }),
  hasLastCall: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.boolean() }),
  deeds: fc.array(deed, { maxLength: 3 }),
  turns: fc.integer({ min: 1, max: 3 }),
});
type Life = typeof life extends fc.Arbitrary<infer Value> ? Value : never;

const names = {
  messages: ["claude-opus-5-5", "claude-sonnet-5-5"],
  chat: ["a/claude-opus-5.5", "a/claude-sonnet-5.5"],
};

function hooksOf({ deeds }: Life, calls: { count: number }): Hooks {
  return {
    beforeLlm: (draft) => {
      const now = deeds.filter(({ at }) => at === calls.count);
      calls.count += 1;
      for (const { does, message } of now) {
        const { id } = draft.messages[message % draft.messages.length] ?? {};
        if (does === "add") draft.add({ role: "user", content: "By the way." });
        else if (does === "add system") draft.add({ role: "system", content: "Take note." });
        else if (id !== undefined && does === "edit") draft.edit(id, "edited");
        else if (id !== undefined) draft.remove(id);
      }
    },
  };
}

function optionsOf(plan: Life, calls: { count: number }): ClerkOptions {
  let resolved = 0;
  return {
    history: (compilers[plan.history] ?? fullHistory)(),
    hooks: hooksOf(plan, calls),
    ...(plan.changesInstructions ? { instructions: () => `Be brief. ${(resolved += 1)}` } : {}),
    ...(plan.compacts > 0
      ? { maxMessages: plan.compacts, autoCompact: { strategy: dropOldest(), keep: Math.ceil(plan.compacts / 2) } }
      : {}),
    ...(plan.hasLastCall ? { budget: { maxSteps: 2, finalAnswer: true } } : {}),
  };
}

test("no program is refused for its thinking, and thinking is sent back whenever its prefix is unchanged", async () => {
  let sent = 0;
  const property = fc.asyncProperty(
    fc.array(life, { minLength: 1, maxLength: 3 }),
    fc.stringMatching(/^[ccclttt]{0,16}$/),
    async (lives, script) => {
      const server = await startStrictServer(thinker(script));
      const stores = memoryStores();
      for (const plan of lives) {
        const model = server[plan.protocol](names[plan.protocol][plan.model]);
        const definition = clerkOn(model, optionsOf(plan, { count: 0 }));
        const runtime = await createRuntime({ agents: [definition], stores });
        const clerk = await runtime.agent("clerk", { agentId: "desk" });
        await clerk.start();
        for (let turn = 0; turn < plan.turns; turn += 1) await clerk.executeTurn(`Question ${turn}?`).result;
        await runtime.shutdown();
      }
      await server.stop();
      expect(server.refusals).toEqual([]);
      expect(server.leftOut).toEqual([]);
      sent += server.requests.reduce((sum, { thoughts }) => sum + thoughts, 0);
    },
  );
  await fc.assert(property);
  expect(sent).toBeGreaterThan(0);
}, 120_000);
