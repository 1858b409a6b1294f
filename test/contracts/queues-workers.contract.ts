import { expect, test } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import type { Queues } from "../../src/queues/index.ts";
import { type QueuesSubject, Recorder, toolJob } from "./queues-fixtures.ts";

/** The number of processes that work on wakes, on the queue "web" and on the queue "browser". */
async function workersOf(queues: Queues): Promise<number[]> {
  return await Promise.all([queues.workers(), queues.workers("web"), queues.workers("browser")]);
}

/** The contract of counts of the workers on each queue. */
export function workersContract(subject: () => QueuesSubject): void {
  test("a client that works on a queue is counted from its start until it leaves; one that only adds jobs is not counted", async () => {
    const { client, soon } = subject();
    const [asks, works] = [client(), client()];
    await asks.add("web", toolJob({ callId: "before" }));
    expect(await workersOf(asks)).toEqual([0, 0, 0]);
    const recorder = new Recorder();
    const slow = Promise.withResolvers<void>();
    await works.work(recorder.options(() => slow.promise));
    expect(await workersOf(asks)).toEqual([1, 1, 0]);
    await soon(recorder.until(({ begun }) => begun.length === 1));
    const drained = works.drain({ timeoutMs: 10_000 });
    slow.resolve();
    await soon(drained);
    expect(await workersOf(asks)).toEqual([0, 0, 0]);
  });

  test("a client that works on some queues is not counted for others", async () => {
    const queues = subject().client();
    const { tools, onDead } = new Recorder().options(async () => "done", ["browser"]);
    await queues.work({ tools, onDead });
    expect(await workersOf(queues)).toEqual([0, 0, 1]);
    await expect(queues.workers("a:b")).rejects.toThrow(InvalidInputError);
  });

  test("every client lists the queues that any client adds to or works on, and no others", async () => {
    const { client, soon } = subject();
    const [asks, works, looks] = [client(), client(), client()];
    expect(await looks.names()).toEqual([]);
    await asks.add("web", toolJob());
    await looks.counts(["nowhere"]);
    await looks.workers("nowhere");
    expect(await looks.names()).toEqual(["web"]);
    const recorder = new Recorder();
    await works.work(recorder.options(async () => "done", ["browser", "web"]));
    await soon(recorder.until(({ ended }) => ended.length === 1));
    expect(await looks.names()).toEqual(["browser", "wake", "web"]);
  });
}
