import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import { createId } from "../../src/base/index.ts";
import { defineAgent, type Runtime } from "../../src/index.ts";
import { codeSeams } from "../support/code-seams.ts";
import { anything, foreignValues } from "../support/foreign-values.ts";
import { every, randomCases, rows } from "../support/full.ts";
import { modelSeams } from "../support/model-seams.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { toolSeams } from "../support/tool-seams.ts";
import { childDefinition, Foreign, playTurn, type Seam } from "../support/seam-play.ts";

const seams = [...modelSeams, ...codeSeams, ...toolSeams];
const named = Object.values(foreignValues);
/** Number of random pairs of a seam and a value; `TROUPE_CASES` raises it. */
const cases = randomCases(40, 10);

/** All named values; in the quick run two per seam, chosen so that all values occur. */
function valuesFor(seam: Seam): readonly (() => unknown)[] {
  const start = seams.indexOf(seam) * 2;
  return rows(
    named,
    (_value, index) => (index - start) % named.length === 0 || (index - start - 1) % named.length === 0,
  );
}

/** What another process finds after the value was returned. */
interface Left {
  readonly hasEnded: boolean;
  /** Status of the agent's next turn in that process. */
  readonly next: string;
  readonly isReserved: boolean;
  /** Whether every amount of every account is a valid amount. */
  readonly isPaid: boolean;
}

const asItShouldBe: Left = { hasEnded: true, next: "completed", isReserved: false, isPaid: true };

/** Plays one turn per value with the seam returning it, and inspects the result in another process. */
async function whatIsLeft(stage: Stage, seam: Seam, values: readonly (() => unknown)[]): Promise<Left[]> {
  const foreign = new Foreign();
  const agents = [defineAgent(seam.define(foreign)), childDefinition];
  const first = await stage.openProcess({ agents, ...seam.runtime });
  const ended: { readonly agentId: string; readonly status: string }[] = [];
  for (const value of values) {
    foreign.on(value);
    const agentId = createId("agent");
    ended.push({ agentId, status: await playTurn(first.runtime, agentId) });
  }
  await first.runtime.shutdown();
  foreign.off();
  const second = await stage.openProcess({ agents, ...seam.runtime });
  const left: Left[] = [];
  for (const { agentId, status } of ended) {
    const next = await playTurn(second.runtime, agentId);
    // A child whose parent's turn has ended is recovered by recover().
    await second.runtime.recover();
    await vi.waitFor(async () => expect(await isAtRest(second.runtime, agentId)).toBe(true), { timeout: 20_000 });
    const accounts = await second.runtime.accounts(agentId);
    left.push({
      hasEnded: ["completed", "stopped", "failed"].includes(status),
      next,
      isReserved: accounts.some(({ reserved }) => reserved.tokens !== 0 || reserved.costMicros !== 0),
      isPaid: accounts.every(({ used }) => Object.values(used).every(isAmount)),
    });
  }
  await second.runtime.shutdown();
  return left;
}

/** Whether no turn of the tree is open. */
async function isAtRest(runtime: Runtime, rootAgentId: string): Promise<boolean> {
  return (await runtime.list({ rootAgentId })).every(({ openTurnId }) => openTurnId === null);
}

function isAmount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** SQLite plays all seams; the other stores play some, since the checks do not depend on the stores. */
const elsewhere = rows(seams, every(8));

describeRuntimes(
  "any value returned by a port",
  (stage) => {
    it.each(rows(seams, every(3)))("$name: leaves a readable store", async (seam) => {
      const values = valuesFor(seam);
      expect(await whatIsLeft(stage(), seam, values)).toEqual(values.map(() => asItShouldBe));
    });
  },
  ["sqlite"],
);

describeRuntimes(
  "values returned by some ports",
  (stage) => {
    it.each(elsewhere)("$name: leaves a readable store", async (seam) => {
      const values = valuesFor(seam);
      expect(await whatIsLeft(stage(), seam, values)).toEqual(values.map(() => asItShouldBe));
    });
  },
  ["memory", "redis"],
);

describeRuntimes(
  "any value from any port",
  (stage) => {
    it("leaves a readable store", async () => {
      const property = fc.asyncProperty(fc.constantFrom(...seams), anything, async (seam, value) => {
        expect(await whatIsLeft(stage(), seam, [value])).toEqual([asItShouldBe]);
      });
      await fc.assert(property, { numRuns: cases });
    });
  },
  ["sqlite"],
);
