import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { abortable, combineSignals } from "../../src/base/index.ts";

describe("combined signals", () => {
  it("abort with the first source and its reason", () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const { signal } = combineSignals([one.signal, undefined, other.signal]);
    expect(signal.aborted).toBe(false);
    other.abort("second");
    one.abort("first");
    expect(signal.reason).toBe("second");
  });

  it("are aborted from the start if a source is", () => {
    const source = new AbortController();
    const combined = combineSignals([source.signal, AbortSignal.abort("gone")]);
    expect(combined.signal.reason).toBe("gone");
    expect(getEventListeners(source.signal, "abort")).toHaveLength(0);
  });

  it("can be aborted on their own", () => {
    const source = new AbortController();
    const combined = combineSignals([source.signal]);
    combined.abort("mine");
    expect(combined.signal.reason).toBe("mine");
    expect(source.signal.aborted).toBe(false);
    expect(getEventListeners(source.signal, "abort")).toHaveLength(0);
  });

  it("release a long-lived source when disposed", () => {
    const source = new AbortController();
    const combined = combineSignals([source.signal]);
    combined.dispose();
    source.abort();
    expect(combined.signal.aborted).toBe(false);
    expect(getEventListeners(source.signal, "abort")).toHaveLength(0);
  });
});

describe("waiting until a signal aborts", () => {
  it("returns the promise's result if it comes first, and leaves no listener", async () => {
    const { signal } = new AbortController();
    await expect(abortable(Promise.resolve(1), signal)).resolves.toBe(1);
    await expect(abortable(Promise.reject(new Error("no")), signal)).rejects.toThrow("no");
    await expect(abortable(Promise.resolve(2), undefined)).resolves.toBe(2);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("rejects with the reason, and handles a later rejection of the promise", async () => {
    const controller = new AbortController();
    const work = Promise.withResolvers<string>();
    const waiting = abortable(work.promise, controller.signal);
    controller.abort(new Error("stop"));
    await expect(waiting).rejects.toThrow("stop");
    work.reject(new Error("too late"));
    await expect(abortable(work.promise, controller.signal)).rejects.toThrow("stop");
  });
});
