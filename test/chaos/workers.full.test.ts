import { describe, expect, it } from "vitest";
import { f12 } from "../../chaos/faults/f12.ts";
import { f19 } from "../../chaos/faults/f19.ts";
import { many } from "../../chaos/faults/many.ts";
import { serve } from "../../chaos/faults/serve.ts";
import { serveWires } from "../../chaos/faults/serve-wires.ts";
import { shortFormOf } from "../support/chaos-forms.ts";
import { redisProgram } from "../support/redis-server.ts";

const timeout = 120_000;

it("F19, a short form: an agent whose owner died and that was then aborted begins nothing", { timeout }, async () => {
  expect((await shortFormOf(f19, 1)).succeeded).toBe(1);
});

describe.skipIf(!redisProgram)("workers on Redis, in short forms", () => {
  it("F12: jobs of ended calls have no effect when they are added again", { timeout }, async () => {
    expect(await shortFormOf(f12, 4)).toMatchObject({ operations: 4, effectsMore: 0 });
  });

  it("MANY: children of one parent over two workers leave nothing in the queues", { timeout }, async () => {
    const report = await shortFormOf(many, 12);
    expect(report.succeeded).toBe(12);
    expect(report["parent"]).toMatchObject({ weighed: expect.any(Number), held: expect.any(Number) });
  });

  it("SERVE: clients of killed nodes receive each event once", { timeout }, async () => {
    const report = await shortFormOf(serve, 2);
    expect(report["deaths"]).toBeGreaterThanOrEqual(2);
    expect(report["cutStreams"]).toBeGreaterThan(0);
  });

  it.each(serveWires)(
    "$name: clients of killed nodes continue by the means of their protocol",
    { timeout },
    async (row) => {
      const report = await shortFormOf(row, 2);
      expect(report["deaths"]).toBeGreaterThanOrEqual(2);
      expect(report["cutStreams"]).toBeGreaterThan(0);
    },
  );
});
