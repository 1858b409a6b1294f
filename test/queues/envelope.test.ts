import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import { open, seal, createSigner, toolJobIdOf, type ToolJob, wakeKeyOf } from "../../src/queues/jobs.ts";

const first = { id: "2026-10", secret: "a secret of enough characters" };
const second = { id: "2026-11", secret: "another secret of enough characters" };
const job: ToolJob = {
  kind: "tool",
  tenant: "default",
  agentId: "desk-7",
  callId: "desk-7#1:1:0",
  attempt: 1,
  isRepeatable: true,
};
const id = toolJobIdOf(job);

/** As it comes back from the queue. */
function stored(value: unknown): Record<string, unknown> {
  return JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
}

describe("a sealed job", () => {
  test("is opened where it was sealed for, with any of the keys", () => {
    const sealed = stored(seal("web", job, createSigner([first])));
    expect(open("web", id, sealed, createSigner([first]))).toEqual({ job });
    expect(open("web", id, sealed, createSigner([second, first]))).toEqual({ job });
    expect(open("web", id, sealed, undefined)).toEqual({ job });
  });

  test.each([
    ["in another queue", "browser", id, {}, "its signature does not match"],
    ["under another id", "web", `${id}0`, {}, "under the id of another job"],
    ["with other ids", "web", id, { job: { ...job, agentId: "desk-8" } }, "its signature does not match"],
    ["made repeatable", "web", id, { job: { ...job, isRepeatable: false } }, "its signature does not match"],
    ["unsigned", "web", id, { signature: undefined }, "it is not signed"],
    ["signed with an unknown key", "web", id, { signature: { keyId: "x", mac: "00" } }, "an unknown key"],
    ["cut short", "web", id, { signature: { keyId: first.id, mac: "00" } }, "its signature does not match"],
    ["of no version", "web", id, { version: 0 }, "not a job of this version (version:"],
    ["with something beside it", "web", id, { more: 1 }, "not a job of this version"],
    ["longer than any job", "web", id, { job: "x".repeat(10_000) }, "longer than 8192 characters"],
  ])("is refused %s", (_how, queue, jobId, change, why) => {
    const signer = createSigner([first]);
    const sealed = stored({ ...seal("web", job, signer), ...change });
    expect(open(queue, jobId, sealed, signer)).toEqual({ refused: expect.stringContaining(why) });
  });

  test("of a later version is left to processes that know it, with any content", () => {
    const sealed = stored({ version: 3, more: { of: "it" } });
    const later = "its version is 3; this process supports 1";
    expect(open("web", id, sealed, createSigner([first]))).toEqual({ later });
  });

  test("is refused, signed or not, when it does not fit the schema", () => {
    const signer = createSigner([first]);
    for (const fields of [{ attempt: 0 }, { more: 1 }, { kind: "other" }, { traceparent: "x" }, { agentId: 1 }]) {
      const odd = { ...job, ...fields } as unknown as ToolJob;
      expect(open("web", id, stored(seal("web", odd, signer)), signer)).toHaveProperty("refused");
      expect(open("web", id, stored(seal("web", odd, undefined)), undefined)).toHaveProperty("refused");
    }
  });

  test("does not open to a value that is not a job", () => {
    const signer = createSigner([first]);
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(open("web", id, value, signer)).toHaveProperty("refused");
        expect(open("web", id, { version: 1, job: value }, undefined)).toHaveProperty("refused");
      }),
    );
  });
});

test("keys that cannot work are refused in words that do not show them", () => {
  expect(() => createSigner([])).toThrow(InvalidInputError);
  expect(() => createSigner([])).toThrow("at least one { id, secret }");
  expect(() => createSigner([first, { id: "x", secret: "too short" }])).toThrow(
    /^secrets\[1\]\.secret must be a text of at least 16 characters$/,
  );
  expect(() => createSigner([first, first])).toThrow("each key needs its own id");
  expect(() => createSigner([{ ...first, id: "a b" }])).toThrow("not a valid id");
});

test("no two jobs have one id, none is a number or holds a colon", () => {
  const unit = fc.constantFrom("a", "1", "/", "%", "2", "F", ":", ".", "~", "#", " ", "\0", "ä", "🦜");
  const text = fc.string({ minLength: 1, maxLength: 3, unit });
  const key = fc.record({ tenant: text, agentId: text, callId: text, attempt: fc.integer({ min: 1, max: 20 }) });
  fc.assert(
    fc.property(key, key, (one, other) => {
      const isSame = JSON.stringify(one) === JSON.stringify(other);
      expect(toolJobIdOf(one) === toolJobIdOf(other)).toBe(isSame);
      expect(toolJobIdOf(one)).not.toMatch(/^\d+$|:/);
      const agents = [one, other].map(({ tenant, agentId }) => ({ tenant, agentId }));
      const [mine, theirs] = agents.map((agent) => JSON.stringify(agent));
      expect(wakeKeyOf(one) === wakeKeyOf(other)).toBe(mine === theirs);
    }),
    { numRuns: 1_000 },
  );
});
