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
/** Random pairs of a seam and a value; `TROUPE_CASES` gives more. */
const cases = randomCases(40, 10);

/** All of the named values; in the quick run two of them, others for each seam, so that all of them come by. */
function valuesFor(seam: Seam): readonly (() => unknown)[] {
  const start = seams.indexOf(seam) * 2;
  return rows(
    named,
    (_value, index) => (index - start) % named.length === 0 || (index - start - 1) % named.length === 0,
  );
}

/** What another process finds after a value has come in. */
interface Left {
  readonly hasEnded: boolean;
  /** How the next turn of its agent ends there. */
  readonly next: string;
  readonly isReserved: boolean;
  /** Whether every amount of every account can be one. */
  readonly isPaid: boolean;
}

const asItShouldBe: Left = { hasEnded: true, next: "completed", isReserved: false, isPaid: true };

/** Gives each value at that place in the first turn of an agent, and looks at what is left as another process would. */
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
    // A child whose parent's turn has ended is taken up by the process that recovers what was left behind.
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

/** No turn of the tree is open any more. */
async function isAtRest(runtime: Runtime, rootAgentId: string): Promise<boolean> {
  return (await runtime.list({ rootAgentId })).every(({ openTurnId }) => openTurnId === null);
}

function isAmount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** All of them are played on SQLite; on the other stores a part is, since what comes in does not ask where it goes. */
const elsewhere = rows(seams, every(8));

describeRuntimes(
  "any value that a port gives",
  (stage) => {
    it.each(rows(seams, every(3)))("$name: leaves a store that reads", async (seam) => {
      const values = valuesFor(seam);
      expect(await whatIsLeft(stage(), seam, values)).toEqual(values.map(() => asItShouldBe));
    });
  },
  ["sqlite"],
);

describeRuntimes(
  "what some ports give",
  (stage) => {
    it.each(elsewhere)("$name: leaves a store that reads", async (seam) => {
      const values = valuesFor(seam);
      expect(await whatIsLeft(stage(), seam, values)).toEqual(values.map(() => asItShouldBe));
    });
  },
  ["memory", "redis"],
);

describeRuntimes(
  "any value at any port",
  (stage) => {
    it("leaves a store that reads", async () => {
      const property = fc.asyncProperty(fc.constantFrom(...seams), anything, async (seam, value) => {
        expect(await whatIsLeft(stage(), seam, [value])).toEqual([asItShouldBe]);
      });
      await fc.assert(property, { numRuns: cases });
    });
  },
  ["sqlite"],
);
