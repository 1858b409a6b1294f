import * as fc from "fast-check";
import { expect, test } from "vitest";
import { anyProgram } from "../../chaos/programs/draw.ts";
import { type PlayOptions, Stage } from "../../chaos/programs/play.ts";
import type { Program } from "../../chaos/programs/program.ts";
import { createInspector } from "../../src/inspector/index.ts";
import { type Telemetry, traceToOpenTelemetry } from "../../src/telemetry/index.ts";
import { amount } from "../support/full.ts";
import { createSpanRecorder } from "../telemetry/span-recorder.ts";

/** The rows of every agent, and the observed calls of tools, models, hooks and users, in order. */
async function play(drawn: Program, options: PlayOptions): Promise<unknown> {
  const left = [...drawn.deaths];
  const programs = new Map([["program", drawn]]);
  const stage = new Stage({ programs, width: 1, path: undefined, options, deathOf: () => left.shift() });
  try {
    await stage.play();
    const agents = await stage.plain.listAgents({ tenant: "default", limit: 1_000 });
    const journals = agents.map(({ agentId }) => stage.plain.readJournal({ tenant: "default", agentId }, 1));
    const done = stage.lines.filter(({ type }) => type !== "seen");
    return comparable({ journals: await Promise.all(journals), done });
  } finally {
    await stage.close();
  }
}

/** Random ids are replaced by the order in which they appear; the span id of an entry is left out. */
function comparable(played: object): unknown {
  const ids = new Map<string, string>();
  const numbered = (id: string): string => {
    const known = ids.get(id) ?? `id-${ids.size + 1}`;
    ids.set(id, known);
    return known;
  };
  const text = JSON.stringify(played, (key, value: unknown) => (key === "trace" ? undefined : value));
  return JSON.parse(text.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, numbered));
}

interface Observer {
  readonly name: string;
  readonly observe: () => PlayOptions & { readonly end?: () => Promise<void> };
}

const observers: readonly Observer[] = [
  { name: "by nothing, a second time", observe: () => ({}) },
  {
    name: "by onInspect",
    observe: () => {
      const inspector = createInspector();
      inspector.subscribe(() => undefined);
      return { onInspect: inspector.onInspect };
    },
  },
  {
    name: "by OpenTelemetry",
    observe: () => {
      const { tracerProvider } = createSpanRecorder();
      const traces: Telemetry[] = [];
      return {
        onRuntime: (runtime) => traces.push(traceToOpenTelemetry(runtime, { tracerProvider })),
        end: async () => {
          for (const trace of traces) await trace.close();
        },
      };
    },
  },
];

test.each(observers)(
  "observed $name, random programs leave the same journals and effects",
  {
    timeout: 120_000,
  },
  async ({ observe }) => {
    await fc.assert(
      fc.asyncProperty(anyProgram, fc.boolean(), async (drawn, restores) => {
        const { end, ...options } = observe();
        const observed = await play(drawn, { restores, ...options });
        await end?.();
        expect(observed).toEqual(await play(drawn, { restores }));
      }),
      { numRuns: amount(200, 5) },
    );
  },
);
