import { expect, test } from "vitest";
import { transitionsOf } from "../../src/inspector/replay/machines.ts";
import type { Charts } from "../../src/inspector/ui/chart.ts";
import chartsJson from "../../src/inspector/ui/charts.json" with { type: "json" };
import { scenarios } from "../machines/scenarios.ts";
import { every, rows } from "../support/full.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const charts = chartsJson as unknown as Charts;

function pathOf(value: unknown): string {
  if (typeof value === "string") return value;
  const [[name, below] = ["", ""]] = Object.entries(value as object);
  return `${name}.${pathOf(below)}`;
}

/** A cause without a type matches no entry, and `model.*` matches each entry type with that prefix. */
function covers(type: string, entry: string): boolean {
  return type === entry || type === "" || (type.endsWith(".*") && entry.startsWith(type.slice(0, -1)));
}

describeRuntimes("the guard of a transition", (stage) => {
  test.each(rows(scenarios, every(9)))("exists in its chart: $name", async ({ run }) => {
    const runtime = await run(stage(), {});
    const named = new Set<string>();
    for (const { agentId } of await runtime.list()) {
      const journal = await runtime.stores.readJournal({ tenant: "default", agentId }, 1);
      for (const { machine, from, entry, guard } of transitionsOf(agentId, journal)) {
        const source = pathOf(from);
        const causes = charts[machine].transitions
          .filter((one) => one.from === "" || source === one.from || source.startsWith(`${one.from}.`))
          .flatMap((one) => one.causes);
        const fits = causes.some(([type, name]) => covers(type, entry) && name === (guard ?? ""));
        expect(fits ? "" : `${machine} ${source} ${entry} [${guard}]`).toBe("");
        if (guard !== null) named.add(guard);
      }
    }
    // A guard chooses the end of each of these turns.
    expect(named.size).toBeGreaterThan(0);
  });
});
