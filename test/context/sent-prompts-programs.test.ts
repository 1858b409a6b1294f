import * as fc from "fast-check";
import { expect, it, test } from "vitest";
import { type PromptGap, SentPrompts } from "../../src/context/sent-prompts.ts";
import type { Stores } from "../../src/stores/index.ts";
import { scenarios } from "../machines/scenarios.ts";
import { every, randomCases, rows } from "../support/full.ts";
import { RandomPlay } from "../support/random-play.ts";
import { turnPlan } from "../support/random-turns.ts";
import { emptyTally } from "../support/random-world.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { agentsOf, conversationOf } from "../support/stored-programs.ts";

interface Found {
  exact: number;
  readonly gaps: Partial<Record<PromptGap, number>>;
  readonly faults: string[];
}

/** Rebuilds all prompts of a tree. A gap is a fault unless the program explains it. */
async function look(stores: Stores, rootAgentId: string, allowed: readonly PromptGap[], found: Found): Promise<void> {
  for (const agent of await agentsOf(stores, rootAgentId)) {
    const stored = await conversationOf(stores, agent);
    const prompts = new SentPrompts(stored);
    const granted = stored.entries.filter((entry) => entry.type === "model.requested" && entry.reservation);
    expect(prompts.calls.map(({ seq }) => seq)).toEqual(granted.map(({ seq }) => seq));
    for (const { seq } of prompts.calls) {
      const check = prompts.prompt(seq)?.check;
      if (check?.isExact) found.exact += 1;
      else if (check && allowed.includes(check.why)) found.gaps[check.why] = (found.gaps[check.why] ?? 0) + 1;
      else found.faults.push(`${agent.agentId} ${seq}: ${check?.why}`);
    }
  }
}

describeRuntimes("prompts of stored programs", (stage) => {
  test.each(rows(scenarios, every(6)))("$name", async ({ run }) => {
    const runtime = await run(stage(), {});
    const found: Found = { exact: 0, gaps: {}, faults: [] };
    for (const { agentId } of await runtime.list({ rootsOnly: true })) {
      await look(runtime.stores, agentId, ["cleared_messages"], found);
    }
    expect(found.faults).toEqual([]);
  });
});

/** Few cases per test, so that even a busy machine completes them within the timeout. */
const casesOfPart = 15;
const cases = randomCases(300, 20);
const parts = Array.from({ length: Math.ceil(cases / casesOfPart) }, (_, part) => part);

describeRuntimes(
  "prompts of random programs",
  (stage) => {
    const found: Found = { exact: 0, gaps: {}, faults: [] };

    it.each(parts)("are rebuilt as they were sent, or with the reason why not: part %i", async (part) => {
      const stores = stage().look();
      let number = 0;
      const property = fc.asyncProperty(turnPlan, async (plan) => {
        const agentId = `root-${number}`;
        number += 1;
        expect(await new RandomPlay(stage(), stores, plan, { agentId, tally: emptyTally() }).play()).toEqual([]);
        const isCleared = plan.turns.some(({ before }) => before === "clear" || before === "reset");
        const allowed: PromptGap[] = [
          ...(isCleared ? (["cleared_messages"] as const) : []),
          ...(plan.history.kind === "broken" ? (["custom_compiler"] as const) : []),
        ];
        await look(stores, agentId, allowed, found);
        expect(found.faults).toEqual([]);
      });
      const seed = Number(process.env["TROUPE_SEED"] ?? 20_261_123) + part;
      await fc.assert(property, { numRuns: casesOfPart, seed });
    });

    it("the cases contained some work", () => {
      expect(found.exact).toBeGreaterThan(3 * cases);
      expect(found.gaps.custom_compiler ?? 0).toBeGreaterThan(0);
      expect(found.gaps.cleared_messages ?? 0).toBeGreaterThan(0);
    });
  },
  ["memory"],
);
