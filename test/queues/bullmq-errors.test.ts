import { expect, test } from "vitest";
import { faultOf } from "../../src/queues/bullmq-faults.ts";
import { BullmqPostgres } from "../../src/queues/bullmq-postgres.ts";
import { BullmqRedis } from "../../src/queues/bullmq-redis.ts";

const shared = { timeoutMs: 100, prefix: "test." };
const server = new BullmqRedis({ ...shared, place: { url: "redis://127.0.0.1:1" } });
const asIs = { server, redact: (text: string): string => text };
const jobId = "call.default/desk-7/desk-7%231%3A1%3A0/1";

/** An error as the package makes it: its code identifies the cause. */
function answered(code: number, message: string): Error {
  return Object.assign(new Error(message), { code });
}

test.each([
  answered(-1, `Missing key for job ${jobId}. moveToFinished`),
  answered(-2, `Missing lock for job ${jobId}. moveToFinished`),
  answered(-3, `Job ${jobId} is not in the active state. moveToFinished`),
  answered(-6, `Lock mismatch for job ${jobId}. Cmd moveToFinished from active`),
])("a job that the worker no longer holds: %s", (error) => {
  expect(faultOf("web", error, asIs)).toMatchObject({
    code: "lease_lost",
    details: { queue: "web", jobId },
    message: expect.stringContaining(`job "${jobId}" of queue "web" has lost its lock while it ran`),
  });
});

test("an unknown error is reported as it is, redacted and shortened", () => {
  const error = new RangeError(`s3cret is out of range ${"x".repeat(10_000)}`);
  const fault = faultOf("web", error, { server, redact: (text) => text.replaceAll("s3cret", "***") });
  expect(fault.code).toBe("invariant");
  expect(fault.message).toMatch(/^a worker of queue "web" failed: RangeError: \*\*\* is out of range x+$/);
  expect(fault.message.length).toBeLessThan(600);
  expect(faultOf("web", "thrown", asIs).message).toBe('a worker of queue "web" failed: it threw string');
});

test("a broken connection does not count as a fault of a job, nor does a job with that word in its id", () => {
  const broken = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), { code: "ECONNREFUSED" });
  expect(faultOf("web", broken, asIs).code).toBe("store_unavailable");
  expect(faultOf("web", new Error("Connection is closed."), asIs).code).toBe("store_unavailable");
  expect(faultOf("web", new Error("the lock of the door"), asIs).code).toBe("invariant");
});

test("an error of Postgres is one of the connection, without its words", () => {
  const postgres = new BullmqPostgres({ ...shared, client: {}, maxConnections: 1 });
  const broken = Object.assign(new Error("terminating s3cret connection"), { code: "57P01", severity: "FATAL" });
  const fault = faultOf("web", broken, { ...asIs, server: postgres });
  expect(fault.code).toBe("store_unavailable");
  expect(fault.message).not.toContain("s3cret");
});
