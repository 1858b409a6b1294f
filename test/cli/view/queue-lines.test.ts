import { expect, test } from "vitest";
import { deadLetterTable, queueTable } from "../../../src/cli/commands/queues.ts";
import type { DeadLetter } from "../../../src/queues/index.ts";

test("queues with their waiting and running jobs and dead letters", () => {
  const none = { waiting: 0, active: 0, delayed: 0, dead: 0, workers: 0 };
  expect(
    queueTable([
      { queue: "browser", ...none, waiting: 14, active: 2, workers: 1 },
      { queue: "wake", ...none, delayed: 1, dead: 3 },
    ]),
  ).toEqual([
    "QUEUE          WAITING  RUNNING  DELAYED  DEAD  WORKERS",
    "browser             14        2        0     0        1",
    "wake (agents)        0        0        1     3        0",
  ]);
});

const letter = (job: DeadLetter["job"], cause: Partial<DeadLetter["cause"]>): DeadLetter => ({
  queue: "browser",
  jobId: "call.default/till",
  job,
  cause: { code: "failed", message: "it threw\nthis", deaths: 0, ...cause },
  at: new Date(2026, 10, 21, 14, 3).getTime(),
});

test("dead letters with their job, if known, and the cause", () => {
  const agent = { tenant: "default", agentId: "till" };
  const call = { ...agent, kind: "tool", callId: "till#3:2:0", isRepeatable: true } as const;
  expect(
    deadLetterTable([
      letter({ ...call, attempt: 1 }, { code: "worker_died", deaths: 2, message: "its worker died" }),
      letter({ ...call, attempt: 2 }, {}),
      letter({ ...agent, kind: "wake" }, {}),
      letter(null, { code: "refused" }),
    ]),
  ).toEqual([
    "GIVEN UP          QUEUE    JOB                         CAUSE        DEATHS  WHY",
    "2026-11-21 14:03  browser  call till#3:2:0             worker_died       2  its worker died",
    "2026-11-21 14:03  browser  call till#3:2:0, attempt 2  failed            0  it threw this",
    "2026-11-21 14:03  browser  agent till                  failed            0  it threw this",
    "2026-11-21 14:03  browser  call.default/till           refused           0  it threw this",
  ]);
});
