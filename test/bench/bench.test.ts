import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bare } from "../../bench/bare/index.ts";
import type { Contender } from "../../bench/contender.ts";
import { sideOf, studyOf } from "../../bench/conversations.ts";
import { answerText } from "../../bench/model-answers.ts";
import { type ModelProcess, startModelProcess } from "../../bench/model-process.ts";
import { jsonLine, rowsOf, table } from "../../bench/report.ts";
import { interleave, sidesOf } from "../../bench/rounds.ts";
import { type Scenario, scenarios } from "../../bench/scenario.ts";
import { medianInterval } from "../../bench/statistics.ts";
import { studies } from "../../bench/studies/index.ts";
import { againstThemselves, type Pair, type Plan, type Side } from "../../bench/study.ts";
import { first, inFull, rows } from "../support/full.ts";

let server: ModelProcess;

beforeAll(async () => {
  server = await startModelProcess();
});

afterAll(async () => {
  await server.stop();
});

/** A scenario of the table at a size that takes no time. */
function tiny(name: string, changes: Partial<Scenario>): Scenario {
  const scenario = scenarios.find((candidate) => candidate.name === name);
  if (scenario === undefined) throw new Error(`No scenario is named ${name}.`);
  return { ...scenario, ...changes };
}

function contender(name: string, turn: () => Promise<string>, log: string[] = []): Contender {
  const open = () => {
    log.push(name);
    return { turn };
  };
  const close = async () => {
    log.push(`${name} closed`);
  };
  return { name, prepare: async () => ({ open, close }) };
}

/** One model call without a loop. */
async function askOnce(): Promise<string> {
  const messages = [{ role: "user", content: "Go" }];
  const body = JSON.stringify({ model: "one", messages });
  const response = await fetch(`${server.baseUrl}/chat/completions`, { method: "POST", body });
  return ((await response.json()) as { choices: [{ message: { content: string } }] }).choices[0].message.content;
}

async function measure(scenario: Scenario, contenders: readonly Contender[], plan: Plan, conversations = 1) {
  const sides = contenders.map((each) => sideOf(scenario, each, conversations));
  const samples = await interleave(sides, { plan, server });
  return sides.map((side) => samples.get(side) ?? []);
}

describe("the bare loop", () => {
  const sizes: readonly Scenario[] = [
    tiny("turns-1", { turns: 2 }),
    tiny("turns-64", { parallel: 3, turns: 2 }),
    tiny("loop-10", { model: "loop-3", callsPerTurn: 3 }),
    tiny("calls-8", { model: "calls-2" }),
    tiny("stream-16", { model: "stream-20", parallel: 2 }),
    tiny("subagents-50", { model: "spawn-3", callsPerTurn: 2 + 3 * 2 }),
  ];

  test("is tried on every scenario", () => {
    expect(sizes.map(({ name }) => name)).toEqual(scenarios.map(({ name }) => name));
  });

  test.each(sizes)("does the work of $name", async (scenario) => {
    const samples = await measure(scenario, [bare, bare], { warmUps: 1, rounds: 2 }, 3);
    // Each answer and the number of model calls were compared; it remains to check that every round was counted.
    expect(samples.map((values) => values.length)).toEqual([2, 2]);
    for (const { value, processorMs } of samples.flat()) {
      expect(value).toBeGreaterThan(0);
      expect(processorMs).toBeGreaterThanOrEqual(0);
    }
  });
});

describe("a round", () => {
  const scenario = tiny("turns-1", { turns: 1 });
  const plan = { warmUps: 0, rounds: 1 };

  test("starts with another contender each time, and closes all at the end", async () => {
    const log: string[] = [];
    const contenders = ["a", "b", "c"].map((name) => contender(name, askOnce, log));
    await measure(scenario, contenders, { ...plan, rounds: 3 });
    expect(log.join(" ")).toBe("a b c b c a c a b a closed b closed c closed");
  });

  test("refuses a wrong answer, and still closes the contender", async () => {
    const log: string[] = [];
    const lazy = contender("lazy", async () => "Done, surely.", log);
    await expect(measure(scenario, [lazy], plan)).rejects.toThrow(/turns-1, lazy: expected the answer .*got/);
    expect(log.at(-1)).toBe("lazy closed");
  });

  test("refuses a right answer with too few or too many model calls", async () => {
    const clever = contender("clever", async () => answerText);
    const twice = contender("twice", () => askOnce().then(askOnce));
    await expect(measure(scenario, [clever], plan)).rejects.toThrow("expected 1 model calls in a sample, counted 0");
    await expect(measure(scenario, [twice], plan)).rejects.toThrow("counted 2");
  });
});

describe("every study", () => {
  test.each(studies)("$name compares sides under its own name, each pair in its own row", async ({ name, load }) => {
    const study = await load();
    expect(study.name).toBe(name);
    for (const quick of [true, false]) {
      expect(study.plan(quick).rounds).toBeGreaterThan(0);
      const pairs = await study.pairs(quick);
      for (const { ours, bare: compared } of pairs) expect(ours).not.toBe(compared);
      const rows = pairs.map(({ stores, variant }) => `${stores} ${variant}`);
      expect(new Set(rows).size).toBe(rows.length);
    }
  });
});

test("a comparison with themselves contains each bare side once, with its variant", async () => {
  const [object, rows, ours] = ["object", "rows", "ours"].map((name): Side => ({ name, prepare: idleStation }));
  if (!object || !rows || !ours) throw new Error("three sides");
  const pairs: Pair[] = [
    { stores: "memory", variant: "commit", ours, bare: object },
    { stores: "memory", variant: "share", ours, bare: object },
    { stores: "sqlite", variant: "commit", ours, bare: rows },
  ];
  const alike = againstThemselves(pairs);
  expect(alike.map((pair) => `${pair.ours.name} : ${pair.bare.name}, ${pair.stores} ${pair.variant}`)).toEqual([
    "object, again : object, none commit",
    "rows, again : rows, none commit",
  ]);
  expect(sidesOf(alike)).toHaveLength(4);
  expect(sidesOf(pairs)).toEqual([object, ours, rows]);
});

async function idleStation() {
  return { sample: async () => ({ value: 1, processorMs: 1 }), close: async () => undefined };
}

test("the report contains medians, and their ratio as ours / bare", () => {
  const [bareSide, ours] = ["bare", "memory"].map((name): Side => ({ name, prepare: idleStation }));
  if (!bareSide || !ours) throw new Error("two sides");
  const samples = new Map(
    [[bareSide, [10, 30, 20]] as const, [ours, [44, 40, 12]] as const].map(([side, values]) => [
      side,
      values.map((value) => ({ value, processorMs: value / 4 })),
    ]),
  );
  const pair: Pair = { stores: "memory", ours, bare: bareSide };
  const head = { versions: { troupe: "1.2.3" }, quick: true };
  const rows = rowsOf(studyOf(tiny("loop-10", {})), [pair], samples);
  expect(JSON.parse(jsonLine(rows, head))).toEqual({
    ...head,
    scenarios: [{ name: "loop-10", stores: "memory", unit: "ms/turn", better: "lower", ours: 40, bare: 20, ratio: 2 }],
  });
  expect(jsonLine(rows, head)).not.toContain("\n");
  expect(rowsOf(studyOf(tiny("turns-1", {})), [pair], samples)[0]?.row.better).toBe("higher");
  const shared = rowsOf({ name: "persisted", unit: "ms/turn" }, [{ ...pair, variant: "loop, full" }], samples);
  expect(JSON.parse(jsonLine(shared, head)).scenarios[0]).toMatchObject({ name: "persisted", variant: "loop, full" });
  expect(table(shared)).toContain("persisted, loop, full  memory");
  const [titles, line] = table(rows).split("\n");
  expect(titles?.split(/\s+/)).toEqual([
    "scenario",
    "contender",
    "unit",
    "better",
    "ours",
    "±",
    "%",
    "bare",
    "±",
    "%",
    "ratio",
    "between",
    "cpu",
    "ratio",
    "±",
    "%",
    "95",
    "%",
  ]);
  expect(line?.split(/\s+/)).toEqual([
    "loop-10",
    "memory",
    "ms/turn",
    "lower",
    "40.00",
    "20.0",
    "20.00",
    "25.0",
    "2.00",
    "1.04-2.80",
    "1.33",
    "71.3",
    "0.60-4.40",
  ]);
});

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

test("the median is between two ranks, which narrow with more values", () => {
  expect(medianInterval(upTo(3))).toEqual({ low: 1, high: 3 });
  const [few, many] = [medianInterval(upTo(25)), medianInterval(upTo(2_501))];
  expect([few.low, few.high]).toEqual([expect.closeTo(8.3, 1), expect.closeTo(17.7, 1)]);
  expect([many.low, many.high]).toEqual([expect.closeTo(1_202, 0), expect.closeTo(1_300, 0)]);
});

describe("the command", () => {
  const main = fileURLToPath(new URL("../../bench/main.ts", import.meta.url));

  async function finish(args: readonly string[], signal?: NodeJS.Signals, environment: Record<string, string> = {}) {
    const child = spawn(process.execPath, [main, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...environment },
    });
    const output = { stdout: "", stderr: "" };
    child.stdout.on("data", (part: Buffer) => (output.stdout += part.toString()));
    child.stderr.on("data", (part: Buffer) => (output.stderr += part.toString()));
    if (signal !== undefined) child.stderr.once("data", () => child.kill(signal));
    // `close` is emitted once no process holds the pipes: the model server, which inherits one, has ended too.
    const [code] = await once(child, "close");
    return { code: code as number | null, ...output };
  }

  test("lists the scenarios for an unknown name", async () => {
    const { code, stdout, stderr } = await finish(["--only", "turns-1,nothing"]);
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toContain('--only: there is no scenario "nothing".');
    for (const { name } of studies) expect(stderr).toContain(name);
  });

  inFull(() => {
    test("reports skipped measurements, and continues", async () => {
      const { code, stdout, stderr } = await finish(["--quick", "--only", "redis-traffic", "--json"], undefined, {
        // A machine without redis-server and without a way to fetch it.
        PATH: "",
        TMPDIR: mkdtempSync(join(tmpdir(), "troupe-bench-test-")),
      });
      expect({ code, stdout: JSON.parse(stdout) }).toMatchObject({ code: 0, stdout: { quick: true, scenarios: [] } });
      expect(stderr).toContain("redis-traffic: skipped: there is no redis-server");
    });

    test("ends with one line of JSON", async () => {
      const { code, stdout } = await finish(["--self", "--quick", "--only", "calls-8", "--json"]);
      expect(code).toBe(0);
      const { scenarios: rows } = JSON.parse(stdout);
      expect(rows).toEqual([
        expect.objectContaining({ name: "calls-8", stores: "none", unit: "ms/turn", better: "lower" }),
      ]);
      expect(rows[0].ratio).toBeCloseTo(rows[0].ours / rows[0].bare, 2);
    });
  });

  test.each(
    rows(
      [
        ["SIGINT", 130],
        ["SIGTERM", 143],
        ["SIGKILL", null],
      ] as const,
      first,
    ),
  )("exits immediately on %s, together with the model server", async (signal, code) => {
    expect(await finish(["--self"], signal)).toMatchObject({
      code,
      stdout: "",
      stderr: expect.stringMatching(/^turns-1: .* \.\.\. $/),
    });
  });
});
