import { expect, it } from "vitest";
import { ModelError } from "../../src/errors/index.ts";
import { breakersOf, type LanguageModel } from "../../src/model/index.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";

const limits = { failures: 3, windowMs: 10_000, openMs: 5_000 };
const transient = () => new ModelError("down", { retryable: true, mayHaveBeenSent: true, status: 503 });

function breaker(model: LanguageModel = scriptedModel("x", { provider: "north" })) {
  const clock = createFakeClock();
  const breakers = breakersOf(clock);
  const { signal } = new AbortController();
  const run = (call: () => Promise<unknown>, of = model) => breakers.run({ model: of, limits, signal }, call);
  return {
    clock,
    run,
    fail: (error = transient(), of = model) => run(() => Promise.reject(error), of).catch((thrown: unknown) => thrown),
    answer: (of = model) => run(() => Promise.resolve("fine"), of),
    openFor: (of = model) => {
      const until = breakers.openUntil(of, limits);
      return until === undefined ? undefined : until - clock.elapsed();
    },
    freeIn: (of = model) => Math.max(0, breakers.freeAt(of, limits) - clock.elapsed()),
  };
}

it("1: opens with the last of the failures within the window", async () => {
  const { fail, openFor, clock } = breaker();
  await fail();
  await fail();
  clock.advance(10_001);
  await fail();
  await fail();
  expect(openFor()).toBeUndefined();
  await fail();
  expect(openFor()).toBe(5_000);
  clock.advance(4_999);
  expect(openFor()).toBe(1);
});

it("1: a success forgets the failures before it", async () => {
  const { fail, answer, openFor } = breaker();
  await fail();
  await fail();
  await answer();
  await fail();
  await fail();
  expect(openFor()).toBeUndefined();
});

it("while it is open, nothing is called, and the error names the time of the next call", async () => {
  const { fail, run, clock } = breaker();
  for (let count = 0; count < 3; count += 1) await fail();
  clock.advance(2_000);
  let isCalled = false;
  const refused = await run(async () => {
    isCalled = true;
  }).catch((thrown: unknown) => thrown);
  expect(isCalled).toBe(false);
  expect(refused).toMatchObject({ retryable: true, mayHaveBeenSent: false, retryAfterMs: 3_000 });
  expect(refused).toMatchObject({
    details: { kind: "circuit_open" },
    message: expect.stringContaining("2026-01-01T00:00:05.000Z"),
  });
});

it("2: after that time one call tests the provider; a failure opens it again, a success closes it", async () => {
  const { fail, answer, run, openFor, clock } = breaker();
  for (let count = 0; count < 3; count += 1) await fail();
  clock.advance(5_000);
  expect(openFor()).toBeUndefined();
  const pending = Promise.withResolvers<never>();
  const test = run(() => pending.promise).catch((thrown: unknown) => thrown);
  expect(openFor()).toBe(5_000);
  await expect(answer()).rejects.toThrow("circuit breaker");
  clock.advance(1_000);
  pending.reject(transient());
  await test;
  expect(openFor()).toBe(5_000);
  clock.advance(5_000);
  await answer();
  await fail();
  await fail();
  expect(openFor()).toBeUndefined();
});

it("3: a test without an outcome blocks others for a while only, and an aborted one not at all", async () => {
  const { fail, run, openFor, clock } = breaker();
  for (let count = 0; count < 3; count += 1) await fail();
  clock.advance(5_000);
  void run(() => new Promise(() => undefined));
  expect(openFor()).toBe(5_000);
  clock.advance(5_000);
  expect(openFor()).toBeUndefined();
  await run(() => Promise.reject(new TypeError("a mistake of the adapter"))).catch(() => undefined);
  expect(openFor()).toBeUndefined();
});

it("a late failure of a call that began before does not prolong it", async () => {
  const { fail, run, openFor, clock } = breaker();
  const pending = Promise.withResolvers<never>();
  const slow = run(() => pending.promise).catch(() => undefined);
  for (let count = 0; count < 3; count += 1) await fail();
  clock.advance(3_000);
  pending.reject(transient());
  await slow;
  expect(openFor()).toBe(2_000);
});

it.each<[string, ModelError, boolean]>([
  [
    "a limit of time",
    new ModelError("slow", { retryable: true, mayHaveBeenSent: true, details: { kind: "timeout" } }),
    true,
  ],
  ["a wrong key", new ModelError("key", { retryable: false, mayHaveBeenSent: true, status: 401 }), true],
  ["a refused request", new ModelError("bad", { retryable: false, mayHaveBeenSent: true, status: 400 }), false],
  ["an unknown model", new ModelError("model", { retryable: false, mayHaveBeenSent: true, status: 404 }), false],
  [
    "a tool call that could not be parsed",
    new ModelError("call", { retryable: true, mayHaveBeenSent: true, details: { kind: "tool_use_failed" } }),
    false,
  ],
])("%s counts as a failure of the provider: %s %s", async (_what, error, counts) => {
  const { fail, openFor } = breaker();
  for (let count = 0; count < 3; count += 1) await fail(error);
  expect(openFor() !== undefined).toBe(counts);
});

it("4: Retry-After blocks the refused model, not the provider", async () => {
  const other = scriptedModel("x", { name: "other", provider: "north" });
  const { fail, answer, freeIn, clock } = breaker();
  await fail(new ModelError("slow down", { retryable: true, mayHaveBeenSent: true, status: 429, retryAfterMs: 8_000 }));
  expect([freeIn(), freeIn(other)]).toEqual([8_000, 0]);
  await answer(other);
  clock.advance(8_000);
  expect(freeIn()).toBe(0);
});

/** A model of that provider, at that server. */
const modelAt = (name: string, provider: string, server?: string): LanguageModel => ({
  ...scriptedModel("x", { name, provider }),
  server,
});

it("models of one provider and server share a breaker, and no others", async () => {
  const model = modelAt("a", "north", "host/v1");
  const { fail, openFor } = breaker(model);
  for (let count = 0; count < 3; count += 1) await fail();
  expect(openFor(modelAt("b", "north", "host/v1"))).toBe(5_000);
  for (const other of [modelAt("a", "north"), modelAt("a", "north", "elsewhere"), modelAt("a", "south", "host/v1")]) {
    expect(openFor(other)).toBeUndefined();
  }
});
