import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bareOnSqlite } from "../../bench/bare/index.ts";
import { openMessageTable } from "../../bench/bare/sqlite-messages.ts";
import { sqliteAccountsSide } from "../../bench/bare/sqlite-accounts.ts";
import { sideOf } from "../../bench/conversations.ts";
import { type ModelProcess, startModelProcess } from "../../bench/model-process.ts";
import { arithmeticSide, commitSide, objectSide } from "../../bench/ours/accounts.ts";
import { contenderOn } from "../../bench/ours/index.ts";
import { trafficSides } from "../../bench/ours/redis-traffic.ts";
import { interleave, sidesOf } from "../../bench/rounds.ts";
import { type Scenario, scenarios } from "../../bench/scenario.ts";
import { bareOver } from "../../bench/bare/index.ts";
import { servedOn } from "../../bench/serving/contender.ts";
import { apiWires, benchWires } from "../../bench/serving/wires.ts";
import { growthOfAgents } from "../../bench/studies/growth-agents.ts";
import { growthOfChildren } from "../../bench/studies/growth-children.ts";
import { growthOfTools } from "../../bench/studies/growth-tools.ts";
import { growthOfTurns } from "../../bench/studies/growth-turns.ts";
import { idleSides } from "../../bench/studies/idle.ts";
import { unreadSide } from "../../bench/studies/idle-streams.ts";
import { lateTurn } from "../../bench/studies/late-turn.ts";
import { limitsPairs } from "../../bench/studies/limits-on.ts";
import { requestsSide } from "../../bench/studies/served.ts";
import { bytesSide } from "../../bench/studies/serving.ts";
import { stepCounts } from "../../bench/studies/step-counts.ts";
import { showPairs } from "../../bench/studies/show.ts";
import { watchedPairs } from "../../bench/studies/watched.ts";
import type { Side } from "../../bench/study.ts";
import { inFull } from "../support/full.ts";
import { redisProgram } from "../support/redis-server.ts";

let server: ModelProcess;

beforeAll(async () => {
  server = await startModelProcess();
});

afterAll(async () => {
  await server.stop();
});

/** Names of the sides that completed; each of them compares its outcome with the expected one and throws otherwise. */
async function worked(sides: readonly Side[]): Promise<readonly string[]> {
  const samples = await interleave(sides, { plan: { warmUps: 0, rounds: 2 }, server });
  return sides
    .filter((side) => samples.get(side)?.every(({ value }) => Number.isFinite(value)))
    .map(({ name }) => name);
}

function loopOfThree(): Scenario {
  const scenario = scenarios.find(({ name }) => name === "loop-10");
  if (scenario === undefined) throw new Error("There is no loop-10.");
  return { ...scenario, model: "loop-3", callsPerTurn: 3 };
}

describe("at a size that takes no time", () => {
  test("accounts add up on every side of reserve-settle", async () => {
    const sides = [
      objectSide(10),
      arithmeticSide(10),
      sqliteAccountsSide(3),
      ...(["memory", "sqlite"] as const).flatMap((kind) =>
        [true, false].map((isReserving) => commitSide(kind, { times: 3, isReserving })),
      ),
    ];
    expect(await worked(sides)).toHaveLength(7);
  });

  test("an additional step is counted, and takes the same number of commits each time", async () => {
    const pairs = await stepCounts.pairs(true);
    const samples = await interleave(sidesOf(pairs), { plan: { warmUps: 0, rounds: 2 }, server });
    for (const { variant, ours, bare } of pairs) {
      const [steps = [], turns = []] = [samples.get(ours), samples.get(bare)].map((one) =>
        one?.map(({ value }) => value),
      );
      expect([...steps, ...turns].every(Number.isFinite), variant).toBe(true);
      expect(variant !== "commits" || steps[0] === steps[1], variant).toBe(true);
      expect(variant !== "promises" || (steps[0] ?? 0) > 1, variant).toBe(true);
    }
  });

  test("turns over HTTP end like those in process", async () => {
    const wires = [apiWires.wait, ...benchWires];
    const sides = wires.map((wire) => sideOf(loopOfThree(), servedOn("memory", wire), 2));
    expect(await worked(sides)).toHaveLength(wires.length);
  });

  test("bodies of a turn are counted, requests and answers", async () => {
    const bareSide = bytesSide(loopOfThree(), bareOver);
    const served = bytesSide(loopOfThree(), (fetching) => servedOn("memory", apiWires.stream, fetching));
    const samples = await interleave([bareSide, served], { plan: { warmUps: 0, rounds: 1 }, server });
    const [[fewer], [more]] = [samples.get(bareSide) ?? [], samples.get(served) ?? []];
    expect(fewer?.value).toBeGreaterThan(1_000);
    expect(more?.value).toBeGreaterThan(fewer?.value ?? Infinity);
  });

  test("a watched team works like an unwatched one, and a stored one is shown", async () => {
    expect(await worked(sidesOf(watchedPairs(3)))).toHaveLength(5);
    expect(await worked(sidesOf(showPairs(3)))).toHaveLength(2);
  });

  test("work that grows is done at each of its sizes", async () => {
    const pairs = [...growthOfTurns([1, 3]), ...growthOfChildren([1, 2]), ...growthOfTools([1, 3], 1)];
    expect(pairs.map(({ stores, contender, variant, at }) => [contender ?? stores, variant, at])).toEqual([
      ["memory", "turn 3", { ours: 3, bare: 1 }],
      ["sqlite", "turn 3", { ours: 3, bare: 1 }],
      ["memory", "children 2", { ours: 2, bare: 1 }],
      ["sqlite", "children 2", { ours: 2, bare: 1 }],
      ["memory", "tools 3", { ours: 3, bare: 1 }],
      ["sqlite", "tools 3", { ours: 3, bare: 1 }],
      ["bare", "tools 3", { ours: 3, bare: 1 }],
    ]);
    expect(await worked(sidesOf(pairs))).toHaveLength(14);
  });

  inFull(() => {
    test("live agents are counted in a separate process", async () => {
      expect(await worked(sidesOf(growthOfAgents([100, 101])))).toHaveLength(8);
    });

    test("a server in a separate process answers, and disconnects clients that do not read", {
      timeout: 180_000,
    }, async () => {
      expect(await worked([requestsSide("memory", 50)])).toHaveLength(1);
      expect(await worked([unreadSide({ clients: 1, turns: 1, stallMs: 1_000 })])).toHaveLength(1);
    });

    test("a turn with all limits ends like one without any", async () => {
      expect(await worked(sidesOf(limitsPairs(1)))).toHaveLength(8);
    });

    test("an agent with earlier turns accepts more", async () => {
      const study = lateTurn({ turn: 3, agents: { full: 2, quick: 1 }, turnsPerSample: 2, withFullHistory: true });
      expect(await worked(sidesOf(await study.pairs(true)))).toEqual([
        "turn 1, memory, window",
        "turn 3, memory, window",
        "turn 1, sqlite, window",
        "turn 3, sqlite, window",
        "turn 3, bare",
        "turn 3, memory",
        "turn 3, sqlite",
      ]);
    });

    test("loops on SQLite do the same work, by hand and ours", async () => {
      const sides = (["process", "full"] as const).flatMap((durability) =>
        [bareOnSqlite(durability), contenderOn("sqlite", { durability })].map((one) => sideOf(loopOfThree(), one, 2)),
      );
      expect(await worked(sides)).toHaveLength(4);
    });

    test("conversations at rest are measured in a separate process, once for all numbers of a round", async () => {
      const { heap, rss } = idleSides("bare", 2000);
      const samples = await interleave([heap, rss], { plan: { warmUps: 0, rounds: 1 }, server });
      const [first, second] = [samples.get(heap)?.[0], samples.get(rss)?.[0]];
      expect(first?.value).toBeGreaterThan(0);
      expect(first?.value).toBeLessThan(10);
      // The same process was measured: its processor time is equal to the last digit.
      expect(second?.processorMs).toBe(first?.processorMs);
    });
  });
});

describe.skipIf(!redisProgram)("on Redis, at a size that takes no time", () => {
  inFull(() => {
    test("turns, commits and accounts do the same work as elsewhere", async () => {
      const commits = [true, false].map((isReserving) => commitSide("redis", { times: 3, isReserving }));
      expect(await worked([sideOf(loopOfThree(), contenderOn("redis"), 2), ...commits])).toHaveLength(3);
    });
  });

  test("a later turn sends as many commands as the first, and the numbers of a round are of one turn", async () => {
    const [first, late] = [trafficSides({ turnsBefore: 0 }), trafficSides({ turnsBefore: 4 })];
    const sides = [first, late].flatMap((one) => [one.commands, one["bytes sent"], one["bytes answered"]]);
    const samples = await interleave(sides, { plan: { warmUps: 1, rounds: 2 }, server });
    const valueOf = (side: Side): number => Math.min(...(samples.get(side) ?? []).map(({ value }) => value));
    expect(valueOf(first.commands)).toBeGreaterThan(0);
    // The first one also loads data; timers may add less than one command.
    expect(valueOf(late.commands)).toBeLessThan(valueOf(first.commands) + 1);
    expect(valueOf(late["bytes sent"])).toBeGreaterThan(100);
    expect(samples.get(late.commands)?.[0]?.processorMs).toBe(samples.get(late["bytes sent"])?.[0]?.processorMs);
  });
});

test("a message inserted by hand cannot be inserted again at the same position", () => {
  const table = openMessageTable("process");
  table.insert(1, 1, { role: "user", content: "Go" });
  table.insert(1, 2, { role: "user", content: "Go" });
  expect(() => table.insert(1, 2, { role: "user", content: "Again" })).toThrow("UNIQUE");
  table.close();
});
