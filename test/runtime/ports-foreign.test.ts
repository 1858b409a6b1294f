import * as fc from "fast-check";
import { expect, it } from "vitest";
import { createId } from "../../src/base/index.ts";
import { defineAgent } from "../../src/index.ts";
import { codeSeams } from "../support/code-seams.ts";
import { anything, foreignValues } from "../support/foreign-values.ts";
import { modelSeams } from "../support/model-seams.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { childDefinition, Foreign, playTurn, type Seam } from "../support/seam-play.ts";

const seams = [...modelSeams, ...codeSeams];
const named = Object.values(foreignValues);
const isFull = process.env["TROUPE_FULL"] === "1";
/** Random pairs of a seam and a value; `TROUPE_CASES` gives more. */
const cases = Number(process.env["TROUPE_CASES"] ?? 40);

/** So many of the named values, others for each seam, so that all of them come by; `TROUPE_FULL=1` takes all for each. */
function valuesFor(seam: Seam, count: number): readonly (() => unknown)[] {
  const start = seams.indexOf(seam) * count;
  return isFull
    ? named
    : Array.from({ length: count }, (_, index) => named[(start + index) % named.length] ?? (() => null));
}

/**
 * Gives each value at that place in the first turn of an agent, and looks at what is left as another process would: everything
 * reads, each agent takes another turn, nothing is refunded or left reserved.
 */
async function leavesAStoreThatReads(stage: Stage, seam: Seam, values: readonly (() => unknown)[]): Promise<void> {
  const foreign = new Foreign();
  const agents = [defineAgent(seam.define(foreign)), childDefinition];
  const first = await stage.openProcess({ agents });
  const ids = values.map(() => createId("agent"));
  for (const [index, value] of values.entries()) {
    foreign.on(value);
    expect(["completed", "stopped", "failed"]).toContain(await playTurn(first.runtime, ids[index] ?? ""));
  }
  await first.runtime.shutdown();
  foreign.off();
  const second = await stage.openProcess({ agents });
  for (const [index, agentId] of ids.entries()) {
    expect(await playTurn(second.runtime, agentId), `after value ${index}`).toBe("completed");
    for (const { used, reserved } of await second.runtime.accounts(agentId)) {
      expect(reserved).toEqual({ tokens: 0, costMicros: 0 });
      for (const amount of Object.values(used)) expect(amount).toSatisfy(isAmount);
    }
  }
  await second.runtime.shutdown();
}

function isAmount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

describeRuntimes(
  "whatever a port gives",
  (stage) => {
    it.each(seams)("$name: leaves a store that reads", async (seam) => {
      await leavesAStoreThatReads(stage(), seam, valuesFor(seam, stage().variant === "sqlite" ? 5 : 2));
    });
  },
  ["memory", "sqlite", "redis"],
);

describeRuntimes(
  "any value at any port",
  (stage) => {
    it("leaves a store that reads", async () => {
      const property = fc.asyncProperty(fc.constantFrom(...seams), anything, async (seam, value) => {
        await leavesAStoreThatReads(stage(), seam, [() => value]);
      });
      await fc.assert(property, { numRuns: cases });
    });
  },
  ["sqlite"],
);
