import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { traceToOpenTelemetry } from "../../src/telemetry/index.ts";
import { randomCases } from "../support/full.ts";
import { RandomPlay } from "../support/random-play.ts";
import { type TurnPlan, turnPlan } from "../support/random-turns.ts";
import { emptyTally } from "../support/random-world.ts";
import { memoryStage, type StagedOptions } from "../support/runtimes.ts";
import { createSpanRecorder } from "../telemetry/span-recorder.ts";

/** Number of programs, high enough to cover all kinds of turns. */
const cases = randomCases(300, 20);
const firstSeed = Number(process.env["TROUPE_SEED"] ?? 20_261_128);

/** How a process can be observed. */
type Watching = Pick<ConstructorParameters<typeof RandomPlay>[3], "watch" | "onInspect">;

const watchings: Readonly<Record<string, Watching>> = {
  OpenTelemetry: {
    watch: (runtime) => {
      const telemetry = traceToOpenTelemetry(runtime, { tracerProvider: createSpanRecorder().tracerProvider });
      return () => telemetry.close();
    },
  },
  "inspection of the machines": { onInspect: () => undefined },
};

const commands = ["openTurn", "pause", "resume", "abort", "decide", "acquire", "release"] as const;

/** Stores that log their writes in order. */
function noting(log: string[]): NonNullable<StagedOptions["through"]> {
  return (stores) =>
    new Proxy(stores, {
      get: (target, name: keyof Stores) => {
        const member: unknown = target[name];
        if (typeof member !== "function") return member;
        return (...given: readonly unknown[]): unknown => {
          if (name === "commit") {
            for (const { key, entries, acknowledged } of given[0] as Parameters<Stores["commit"]>[0]) {
              log.push(JSON.stringify([key.agentId, entries, acknowledged], withoutIds));
            }
          }
          if ((commands as readonly string[]).includes(name)) log.push(name);
          return member.apply(target, given) as unknown;
        };
      },
    });
}

/** Trace ids come from spans, and a prompt's hash includes generated ids. */
const withoutIds = (field: string, value: unknown): unknown =>
  field === "trace" || field === "promptHash" ? undefined : value;

/** Replaces generated ids by their order of appearance. */
function inOrder(log: readonly string[]): readonly string[] {
  const made = new Map<string, string>();
  return log.map((line) =>
    line.replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, (id) => {
      const name = made.get(id) ?? `id ${made.size}`;
      made.set(id, name);
      return name;
    }),
  );
}

/** Everything that one run of a program writes and starts, in order. */
async function played(plan: TurnPlan, watching: Watching = {}): Promise<readonly string[]> {
  const stage = memoryStage();
  const log: string[] = [];
  const options = {
    agentId: "root",
    tally: emptyTally(),
    through: noting(log),
    onCode: (place: string) => log.push(place),
  };
  try {
    const faults = await new RandomPlay(stage, stage.look(), plan, { ...options, ...watching }).play();
    return inOrder([...faults, ...log]);
  } finally {
    await stage.close();
  }
}

it.each(Object.keys(watchings))("%s does not change the order of commits, commands and effects", async (how) => {
  const property = fc.asyncProperty(turnPlan, async (plan) => {
    expect(await played(plan, watchings[how])).toEqual(await played(plan));
  });
  await fc.assert(property, { numRuns: cases, seed: firstSeed, endOnFailure: true });
});
