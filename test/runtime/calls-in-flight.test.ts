import { expect, it } from "vitest";
import { systemClock } from "../../src/base/index.ts";
import { LeaseLostError } from "../../src/index.ts";
import { type CallWait, CallsInFlight } from "../../src/runtime/agent/calls-in-flight.ts";

const lost = new LeaseLostError("another process has it");

function waiting(isRepeatable = true) {
  const controller = new AbortController();
  const state = { isDiscarded: false };
  const run: CallWait = { signal: controller.signal, isDiscarded: () => state.isDiscarded, isRepeatable };
  const discard = (): void => {
    state.isDiscarded = true;
    controller.abort(new Error("discarded"));
  };
  return { run, discard };
}

/** A call whose activation was discarded after it began. */
async function leftOut(inFlight: CallsInFlight) {
  const { promise, reject, resolve } = Promise.withResolvers<string>();
  const first = waiting();
  const outcome = inFlight.run("key", first.run, () => promise);
  first.discard();
  await expect(outcome).rejects.toThrow("discarded");
  expect(inFlight.has("key")).toBe(true);
  return { reject, resolve };
}

it("the next activation joins the call of a discarded one and does not repeat it", async () => {
  const inFlight = new CallsInFlight(systemClock);
  const { resolve } = await leftOut(inFlight);
  const joined = inFlight.run("key", waiting().run, () => Promise.reject(new Error("was made again")));
  resolve("the first");
  expect(await joined).toBe("the first");
  expect(inFlight.has("key")).toBe(false);
});

it("a call that failed because it lost its agent leaves no entry, and the next activation makes a new call", async () => {
  const inFlight = new CallsInFlight(systemClock);
  const { reject } = await leftOut(inFlight);
  reject(lost);
  await Promise.resolve();
  expect(inFlight.has("key")).toBe(false);
  expect(await inFlight.run("key", waiting().run, () => Promise.resolve("anew"))).toBe("anew");
});

it("an activation that joined the failed call repeats it if it may be repeated", async () => {
  const inFlight = new CallsInFlight(systemClock);
  const { reject } = await leftOut(inFlight);
  const joined = inFlight.run("key", waiting().run, () => Promise.resolve("again"));
  reject(lost);
  expect(await joined).toBe("again");
});

it("an activation that joined the failed call gets its error if it may not be repeated", async () => {
  const inFlight = new CallsInFlight(systemClock);
  const { reject } = await leftOut(inFlight);
  const joined = inFlight.run("key", waiting(false).run, () => Promise.resolve("again"));
  reject(lost);
  await expect(joined).rejects.toBe(lost);
});

it("an activation that was discarded too does not repeat the call", async () => {
  const inFlight = new CallsInFlight(systemClock);
  const { reject } = await leftOut(inFlight);
  const second = waiting();
  const joined = inFlight.run("key", second.run, () => Promise.resolve("again"));
  second.discard();
  reject(lost);
  await expect(joined).rejects.toThrow("discarded");
  expect(inFlight.has("key")).toBe(false);
});
