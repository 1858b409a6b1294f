// The process that runs the turns of a job: a worker, or the one that was started for it.
import { describe, expect, test } from "vitest";
import { storeLocation } from "../../../src/cli/job/store-location.ts";
import { type WhereOptions, whereOf, workerLookMs, WorkerWatch } from "../../../src/cli/job/where.ts";
import { InvalidInputError, StoreUnavailableError, UnsupportedError } from "../../../src/errors/index.ts";
import { localQueues, type Queues } from "../../../src/queues/index.ts";

const context = { invocation: { main: "/x/dist/cli/main.js", directory: "/x", script: undefined } };

/** A job in a Redis with this many workers, or with a failing lookup. */
function whereWith(workers: number | Error, options: WhereOptions) {
  let closed = 0;
  const queues: Queues = {
    ...localQueues(),
    workers: async () => (typeof workers === "number" ? workers : Promise.reject(workers)),
    close: async () => void (closed += 1),
  };
  const store = { ...storeLocation({ environment: {} }, { redis: "redis://r" }), openQueues: async () => queues };
  const where = whereOf(context, { store, workerWords: ["--agents", "team.ts"] }, options);
  return { where, queues, closed: () => closed };
}

describe("a job in Redis", () => {
  test.each([
    [1, "The turn runs on a worker."],
    [3, "The turn runs on one of 3 workers."],
  ])("runs on workers if there are %i", async (count, remark) => {
    const { where, queues, closed } = whereWith(count, {});
    expect(await where).toEqual({ part: { queues, role: "client" }, queues, remarks: [remark] });
    expect(closed()).toBe(0);
  });

  test("runs in this process if there are none, and reports this; its queues are closed", async () => {
    const { where, closed } = whereWith(0, {});
    expect(await where).toEqual({
      part: {},
      queues: undefined,
      remarks: ["No worker is running: the turn runs in this process."],
    });
    expect(closed()).toBe(1);
  });

  test("waits for workers if requested, and prints how to start one", async () => {
    const { where } = whereWith(0, { on: "workers" });
    expect(await where).toMatchObject({
      part: { role: "client" },
      remarks: [
        "No worker is running yet. To start one for these agents: npx troupe worker --agents team.ts --redis redis://r",
      ],
    });
  });

  test.each<WhereOptions>([{ on: "here" }, { inspect: true }])(
    "runs in this process with %j, without looking for workers",
    async (options) => {
      expect(await whereWith(new Error("looked"), options).where).toMatchObject({ part: {}, remarks: [] });
    },
  );

  test("the state charts of agents in another process cannot be shown", async () => {
    const { where } = whereWith(2, { on: "workers", inspect: true });
    await expect(where).rejects.toThrow("--inspect shows agents that live in this process");
  });

  test.each([new UnsupportedError("no bullmq"), new StoreUnavailableError("away")])(
    "runs here if the workers cannot be looked up (%s), unless workers were requested",
    async (error) => {
      const unasked = whereWith(error, {});
      expect(await unasked.where).toMatchObject({ part: {}, remarks: [] });
      expect(unasked.closed()).toBe(1);
      await expect(whereWith(error, { on: "workers" }).where).rejects.toThrow(error);
    },
  );
});

test("a job in a file runs in this process, and cannot run on workers", async () => {
  const job = { store: storeLocation({ environment: {} }, {}), workerWords: [] };
  expect(await whereOf(context, job, {})).toMatchObject({ part: {}, remarks: [] });
  await expect(whereOf(context, job, { on: "workers" })).rejects.toThrow(InvalidInputError);
});

/** The messages for these numbers of workers, one per lookup. */
function watch(counts: readonly number[], isTakenUp: () => boolean) {
  const told: string[] = [];
  const left = [...counts];
  const watching = new WorkerWatch({
    queues: { workers: async () => left.shift() ?? 0 },
    isTakenUp,
    definitionName: "lead",
    workerLine: "To start one for these agents: troupe worker",
    tell: (line) => told.push(line),
  });
  const look = async () => {
    while (left.length > 0) await watching.look();
    return told;
  };
  return look();
}

describe("a client that waits", () => {
  test("is told when no worker is left, once each time", async () => {
    const none =
      "No worker is running; the turn continues when one starts. To start one for these agents: troupe worker";
    expect(await watch([2, 0, 0, 1, 0], () => true)).toEqual([none, none]);
  });

  test("is told once if the existing workers do not take the job", async () => {
    const seconds = workerLookMs / 1_000;
    expect(await watch([2, 2, 2], () => false)).toEqual([
      `No worker has started the turn for ${seconds} s. All are busy, or do not have "lead". To start one for these agents: troupe worker`,
    ]);
  });

  test("is told nothing if the job runs", async () => {
    expect(await watch([2, 1, 3], () => true)).toEqual([]);
  });
});
