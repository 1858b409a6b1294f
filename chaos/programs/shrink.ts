import { kindOf, smallerThan as smaller, type SmallerRules } from "../../src/testing/simulation/smaller.ts";
import { type PlayOptions, playProgram } from "./play.ts";
import type { PlannedDeath, Program } from "./program.ts";

/** A program that fails deterministically when it is played alone in one process, with the deaths in the program. */
export interface Reproduced {
  readonly program: Program;
  readonly faults: readonly string[];
  readonly options: Pick<PlayOptions, "on" | "restores">;
}

export interface ShrinkOptions {
  /** Options for playing the program. */
  readonly play?: PlayOptions | undefined;
  /** Milliseconds after which it stops with the result so far. */
  readonly limitMs: number;
}

/**
 * Finds a deterministic failure of a program: without deaths, with restores after every commit, or with a death at each
 * fault point in turn. `undefined` if it never fails.
 */
export async function reproduce(program: Program, options: ShrinkOptions): Promise<Reproduced | undefined> {
  const end = performance.now() + options.limitMs;
  const calm = { ...program, deaths: [] };
  const hits: PlannedDeath[] = [];
  await playProgram(calm, { ...options.play, onHit: (death) => hits.push(death) });
  // The first pass of a rare point is still the first in a smaller program; the ninth commit may not stay the ninth.
  hits.sort((one, other) => one.hit - other.hit);
  const tries: [Program, Reproduced["options"]][] = [
    [calm, {}],
    [calm, { restores: true }],
    [program, {}],
    ...hits.map((death): [Program, Reproduced["options"]] => [{ ...calm, deaths: [death] }, {}]),
  ];
  for (const [tried, how] of tries) {
    if (performance.now() > end) return undefined;
    const faults = await playProgram(tried, { ...options.play, ...how });
    if (faults.length > 0) return { program: tried, faults, options: how };
  }
  return undefined;
}

/**
 * The smallest program that still fails in the same way: fewest turns, agents, steps, tools and deaths, with the simplest
 * values.
 */
export async function shrink(found: Reproduced, options: ShrinkOptions): Promise<Reproduced> {
  const end = performance.now() + options.limitMs;
  // Ignore smaller programs that fail in another way.
  const kinds = new Set(found.faults.map(kindOf));
  let best = found;
  for (;;) {
    const smaller = await firstFailing(best, options, { kinds, end });
    if (!smaller) return best;
    best = smaller;
  }
}

async function firstFailing(
  best: Reproduced,
  { play }: ShrinkOptions,
  { kinds, end }: { readonly kinds: ReadonlySet<string>; readonly end: number },
): Promise<Reproduced | undefined> {
  for (const program of smallerThan(best.program)) {
    if (performance.now() > end) return undefined;
    const faults = await playProgram(program, { ...play, ...best.options });
    if (faults.some((fault) => kinds.has(kindOf(fault)))) return { ...best, program, faults };
  }
  return undefined;
}

/** Random programs get smaller by fewer turns, agents, steps, tools and deaths, with the simplest values. */
const rules: SmallerRules = {
  plainest: { tool: "look", child: "helper", does: "succeed", sent: "after" },
  // Replaces a subagent call by a tool call.
  instead: (parts) => ("child" in parts ? [{ tool: "look", does: "succeed" }] : []),
  field: (name, value, parts) => {
    // Amounts of a budget are kept, because another amount makes another program.
    if (name === "budget" || name === "life") return value === null ? [] : [null];
    // Hooks and user actions have their own values of `does`; no user action is simpler than another.
    if (name !== "does" || !("hook" in parts || "at" in parts)) return undefined;
    return "hook" in parts && value !== "nothing" ? ["nothing"] : [];
  },
};

/** Slightly smaller programs, the smallest first. */
export function smallerThan(program: Program): Program[] {
  return smaller(program, rules);
}

/** The program as a test, to paste into a file of `test/chaos`. */
export function testOf({ program, faults, options }: Reproduced): string {
  const how = Object.keys(options).length > 0 ? `, ${JSON.stringify(options)}` : "";
  return `import { expect, it } from "vitest";
import { playProgram } from "../../chaos/programs/play.ts";
import type { Program } from "../../chaos/programs/program.ts";

// ${faults.map((fault) => fault.replaceAll("\n", " ")).join("\n// ")}
it("a random program", async () => {
  const program: Program = ${JSON.stringify(program, null, 2).replaceAll("\n", "\n  ")};
  expect(await playProgram(program${how})).toEqual([]);
});
`;
}
