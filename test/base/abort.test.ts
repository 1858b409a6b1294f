import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { abortable, combineSignals, createDeferred, LightController, realSignal } from "../../src/base/index.ts";

const late = (): never => {
  throw new Error("it was removed");
};

describe("combined signals", () => {
  it("abort with the first source, for its reason", () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const { signal } = combineSignals([one.signal, undefined, other.signal]);
    expect(signal.aborted).toBe(false);
    other.abort("second");
    one.abort("first");
    expect(signal.reason).toBe("second");
  });

  it("are aborted from the start when a source is", () => {
    const source = new AbortController();
    const combined = combineSignals([source.signal, AbortSignal.abort("gone")]);
    expect(combined.signal.reason).toBe("gone");
    expect(getEventListeners(source.signal, "abort")).toHaveLength(0);
  });

  it("can be aborted alone", () => {
    const source = new AbortController();
    const combined = combineSignals([source.signal]);
    combined.abort("mine");
    expect(combined.signal.reason).toBe("mine");
    expect(source.signal.aborted).toBe(false);
    expect(getEventListeners(source.signal, "abort")).toHaveLength(0);
  });

  it("let go of a long-lived source when disposed", () => {
    const source = new AbortController();
    const combined = combineSignals([source.signal]);
    combined.dispose();
    source.abort();
    expect(combined.signal.aborted).toBe(false);
    expect(getEventListeners(source.signal, "abort")).toHaveLength(0);
  });
});

describe("waiting until a signal aborts", () => {
  it("gives the promise's outcome when it comes first, and leaves no listener", async () => {
    const { signal } = new AbortController();
    await expect(abortable(Promise.resolve(1), signal)).resolves.toBe(1);
    await expect(abortable(Promise.reject(new Error("no")), signal)).rejects.toThrow("no");
    await expect(abortable(Promise.resolve(2), undefined)).resolves.toBe(2);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("rejects with the reason, and a later rejection of the promise disturbs nobody", async () => {
    const controller = new AbortController();
    const work = createDeferred<string>();
    const waiting = abortable(work.promise, controller.signal);
    controller.abort(new Error("stop"));
    await expect(waiting).rejects.toThrow("stop");
    work.reject(new Error("too late"));
    await expect(abortable(work.promise, controller.signal)).rejects.toThrow("stop");
  });
});

describe("light signals", () => {
  it("call each listener once, in the order in which they came", () => {
    const controller = new LightController();
    const heard: string[] = [];
    controller.addEventListener("abort", () => heard.push("one"));
    controller.addEventListener("abort", () => heard.push("other"));
    controller.abort("first");
    controller.abort("second");
    expect(heard).toEqual(["one", "other"]);
    expect(controller).toMatchObject({ aborted: true, reason: "first" });
    expect(() => controller.throwIfAborted()).toThrow("first");
  });

  it("call no listener that was removed, also by an earlier one", () => {
    const controller = new LightController();
    controller.addEventListener("abort", () => controller.removeEventListener("abort", late));
    controller.addEventListener("abort", late);
    controller.abort("now");
    controller.addEventListener("abort", late);
    expect(controller.reason).toBe("now");
  });

  it("abort with an error of that name, where no reason is given", () => {
    const [light, real] = [new LightController(), new AbortController()];
    light.abort();
    real.abort();
    expect(light.reason).toEqual(real.signal.reason);
  });

  it("give user code one signal, which hears of the abort first and keeps its reason", () => {
    const controller = new LightController();
    const heard: string[] = [];
    controller.addEventListener("abort", () => heard.push("light"));
    const real = realSignal(controller);
    real.addEventListener("abort", () => heard.push("real"));
    expect(realSignal(controller)).toBe(real);
    controller.abort("enough");
    expect(heard).toEqual(["real", "light"]);
    expect(real).toBeInstanceOf(AbortSignal);
    expect(real.reason).toBe("enough");
  });

  it("give an aborted signal where they are read late, and a real one as it is", () => {
    const controller = new LightController();
    controller.abort("before");
    expect(realSignal(controller)).toMatchObject({ aborted: true, reason: "before" });
    const { signal } = new AbortController();
    expect(realSignal(signal)).toBe(signal);
  });
});

it("a deferred settles once", async () => {
  const deferred = createDeferred<number>();
  expect(deferred.isSettled).toBe(false);
  deferred.resolve(1);
  deferred.reject(new Error("late"));
  expect(deferred.isSettled).toBe(true);
  await expect(deferred.promise).resolves.toBe(1);
});
