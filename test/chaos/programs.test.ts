import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runPrograms } from "../../chaos/faults/f35.ts";
import { drawPrograms } from "../../chaos/programs/draw.ts";
import { playProgram } from "../../chaos/programs/play.ts";
import type { PlannedCall, Program } from "../../chaos/programs/program.ts";
import { reproduce, shrink, smallerThan, testOf } from "../../chaos/programs/shrink.ts";
import { failureOf } from "../../chaos/scenario.ts";
import { type Stores, textOf } from "../../src/index.ts";
import type { Batch } from "../../src/stores/index.ts";
import { amount, rows } from "../support/full.ts";

it("F35, a short form: random programs in memory, whose agents are restored after every commit", {
  timeout: 120_000,
}, async () => {
  const rounds = amount(200, 12);
  const folder = mkdtempSync(join(tmpdir(), "troupe-F35-"));
  const options = { seed: 1, short: true, rounds, stores: "memory", folder, progress: () => undefined } as const;
  const report = await runPrograms(options);
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  expect(report["agents"]).toBeGreaterThan(2 * rounds);
  expect(report["calls"]).toBeGreaterThan(3 * rounds);
  rmSync(folder, { recursive: true, force: true });
});

const call = (tool: Extract<PlannedCall, { tool: unknown }>["tool"]): PlannedCall => ({ tool, does: "succeed" });

function programOf(rounds: readonly (readonly PlannedCall[])[], more: Partial<Program> = {}): Program {
  const [budget, sent] = [null, "after"] as const;
  return {
    turns: [{ rounds, sent, budget }],
    life: null,
    acts: [],
    hooks: [],
    isWatched: true,
    isReopened: true,
    deaths: [],
    ...more,
  };
}

const small = programOf([[call("send"), call("look")], [{ child: "helper", rounds: [[call("charge")]] }]]);

it("a program whose process dies is run by others to its end", async () => {
  const deaths = [
    { point: "tool.effect", hit: 1 },
    { point: "commit.after", hit: 3 },
  ] as const;
  expect(await playProgram({ ...small, deaths })).toEqual([]);
  expect(await playProgram(small, { on: "memory", restores: true })).toEqual([]);
});

it("a pause of a turn that the driver does not follow is ended, also if the next turn is queued behind it", async () => {
  const child = (name: "errand" | "scout"): PlannedCall => ({ child: name, rounds: [[call("look")]] });
  const generates: PlannedCall = { tool: "look", does: "generate" };
  const [first, second] = [
    [generates, child("errand"), call("look")],
    [call("look"), child("scout")],
  ];
  const { turns } = programOf([first, second]);
  const program = programOf([], {
    turns: [...turns, ...programOf([]).turns],
    acts: [{ at: 12, does: "pause" }],
    hooks: [{ hook: "afterEachTool", step: 1, does: "nothing" }],
    isWatched: false,
    isReopened: false,
    deaths: [{ point: "model.effect", hit: 1 }],
  });
  expect(await playProgram(program)).toEqual([]);
});

/** Stores that change entries on their way to the disk, or from it. */
function changing(stores: Stores, changed: Partial<Stores>): Stores {
  return new Proxy(stores, { get: (all, name) => Reflect.get(name in changed ? changed : all, name) });
}

const withInput = (at: number, more: Partial<Program> = {}): Program => ({
  ...small,
  acts: [{ at, does: "steer" }],
  hooks: [{ hook: "afterUserInput", step: 1, does: "nothing" }],
  ...more,
});

/** Stores that name another step for an input that was taken in. */
const misplacing = (stores: Stores): Stores =>
  changing(stores, {
    readSteer: async (key, keyOrId) => {
      const found = await stores.readSteer(key, keyOrId);
      return found?.steer === "taken" ? { ...found, step: 99 } : found;
    },
  });

it("further inputs for running turns are taken in once, also if processes die or agents restart beside them", async () => {
  for (const program of [
    withInput(1),
    withInput(1, {
      acts: ["restart", "steer"].map((does) => ({ at: 1, does: does as "restart" | "steer" })),
      hooks: [],
    }),
    withInput(2, { deaths: [{ point: "tool.effect", hit: 1 }] }),
    // During the last model call, which another one follows.
    withInput(6, { turns: [...small.turns, ...small.turns.map((turn) => ({ ...turn, sent: "queue" as const }))] }),
  ]) {
    expect(await playProgram(program, { on: "memory", restores: true })).toEqual([]);
  }
});

it("an answer about an input that is not true is found", async () => {
  const faults = await playProgram({ ...small, acts: [{ at: 1, does: "steer" }] }, { on: "memory", spoil: misplacing });
  expect(faults.join()).toContain("the input steer-1 was answered with program#1, step 99");
});

/** Faults that a runtime might have, each with the check that finds it. */
const faults: readonly (readonly [string, RegExp, (stores: Stores) => Stores])[] = [
  [
    "the next process does not know that a call was begun",
    /a once call was done \d times|its account has \d calls/,
    (stores) =>
      changing(stores, {
        readJournal: async (...given) =>
          (await stores.readJournal(...given)).map((row) => ({
            ...row,
            entries: row.entries.filter(({ type }) => type !== "tool.started"),
          })),
      }),
  ],
  [
    "a journal contains less spending than its accounts",
    /the journal's settlements: /,
    (stores) =>
      changing(stores, {
        commit: (batches, ...given) => stores.commit(batches.map(cheaper), ...given),
      }),
  ],
  [
    "a model receives other texts than are stored",
    /its prompt shows other texts than are stored/,
    (stores) =>
      changing(stores, {
        commit: (batches, ...given) => stores.commit(batches.map(louder), ...given),
      }),
  ],
];

function cheaper(batch: Batch): Batch {
  const entries = batch.entries.map((entry) =>
    entry.type === "model.responded" ? { ...entry, settlement: { ...entry.settlement, tokens: 1 } } : entry,
  );
  return { ...batch, entries };
}

function louder(batch: Batch): Batch {
  const messages = batch.messages.map((message) =>
    message.role === "tool" ? { ...message, content: `${textOf(message.content)}!` } : message,
  );
  return { ...batch, messages };
}

it.each(rows(faults, faults.slice(1)))(
  "a planted fault is found and shrunk: %s",
  { timeout: 120_000 },
  async (_title, words, spoil) => {
    const large = programOf(
      [
        [call("charge"), call("look")],
        [{ child: "scout", rounds: [[call("look")]] }, call("send"), call("look")],
      ],
      { hooks: [{ hook: "beforeLlm", step: 2, does: "add" }], acts: [{ at: 3, does: "pause" }] },
    );
    const options = { limitMs: 60_000, play: { spoil } };
    const found = await reproduce(large, options);
    if (!found) throw new Error("the fault was not found");
    const { program, faults: text, options: how } = await shrink(found, options);
    expect(text.join("\n")).toMatch(words);
    expect(await playProgram(program, how)).toEqual([]);
    expect(program.turns).toHaveLength(1);
    expect(program.turns.flatMap(({ rounds }) => rounds).flat().length).toBeLessThanOrEqual(1);
    expect(program).toMatchObject({ hooks: [], acts: [] });
    expect(testOf({ program, faults: text, options: how })).toContain("expect(await playProgram(program");
  },
);

it("shrunk programs are smaller, and shrinking ends", () => {
  let [program] = drawPrograms(3, 1);
  let steps = 0;
  for (; program; steps += 1) program = smallerThan(program).at(-1);
  expect(steps).toBeGreaterThan(5);
  expect(steps).toBeLessThan(1_000);
});

it("the same seed draws the same programs", () => {
  expect(drawPrograms(7, 5)).toEqual(drawPrograms(7, 5));
  expect(drawPrograms(7, 5)).not.toEqual(drawPrograms(8, 5));
});
