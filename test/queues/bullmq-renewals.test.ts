import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { systemClock } from "../../src/base/index.ts";
import { BullmqWorker, type WorkerAround } from "../../src/queues/bullmq-worker.ts";
import { RunningJobs } from "../../src/queues/running-jobs.ts";
import { createGate } from "../support/turn-probes.ts";

const redact = (text: string): string => text;

test("a lock that could not be renewed is reported while the job runs, and not when it has just ended", async () => {
  const worker = new EventEmitter();
  const running = new RunningJobs({ clock: systemClock, graceMs: 0, redact });
  const faults: Error[] = [];
  const around = {
    running,
    onFault: (fault: Error) => faults.push(fault),
    options: { lockMs: 1, deathCheckMs: 1, redact },
    server: { package: async () => ({}), worker: async () => worker },
  } as unknown as WorkerAround;
  const work = { queue: "web", concurrency: 1, rateLimit: undefined, run: async () => "done" as const };
  await BullmqWorker.start(work, around);
  const gate = createGate<"done">();
  const end = running.run("web/7", {
    queue: "web",
    deaths: 0,
    isRepeatable: true,
    timeoutMs: undefined,
    run: () => gate.pass(),
  });
  worker.emit("lockRenewalFailed", ["7"]);
  expect(faults).toMatchObject([{ code: "lease_lost", details: { queue: "web", jobId: "7" } }]);
  gate.open("done");
  await end;
  worker.emit("lockRenewalFailed", ["7"]);
  expect(faults.length).toBe(1);
  worker.emit("error", new Error("another"));
  expect(faults.length).toBe(2);
});
