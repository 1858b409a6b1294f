import { expect, it } from "vitest";
import { runForks } from "../../chaos/faults/f36.ts";
import { failureOf } from "../../chaos/scenario.ts";
import { amount } from "../support/full.ts";

it.each(["memory", "sqlite"] as const)(
  "F36, a short form: forks of random programs, on %s",
  { timeout: 180_000 },
  async (stores) => {
    const rounds = amount(90, 24);
    const report = await runForks({
      seed: 41,
      short: true,
      rounds,
      stores,
      folder: "",
      progress: () => undefined,
      minutes: undefined,
    });
    expect(report.firstViolations).toEqual([]);
    expect(failureOf(report)).toBeUndefined();
    expect(report["deaths"]).toBeGreaterThan(rounds / 4);
    expect(report["recorded"]).toBeGreaterThan(rounds / 10);
  },
);
