import { describe, expect, test } from "vitest";
import { Waiters } from "../../src/base/index.ts";

describe("waiters", () => {
  test("a value resolves every wait for its key, and no wait for another key", async () => {
    const waiters = new Waiters<string, number>();
    const both = [waiters.wait("a"), waiters.wait("a")];
    const other = waiters.wait("b");
    waiters.resolve("a", 1);
    expect(await Promise.all(both)).toEqual([1, 1]);
    expect([waiters.has("a"), waiters.has("b"), waiters.keys()]).toEqual([false, true, ["b"]]);
    waiters.resolve("b", 2);
    expect(await other).toBe(2);
  });

  test("a value that was looked up for earlier waits does not resolve later ones", async () => {
    const waiters = new Waiters<string, string>();
    const early = waiters.wait("a");
    const waiting = waiters.of("a");
    const late = waiters.wait("a");
    waiters.resolve("a", "old", waiting);
    expect(waiters.has("a")).toBe(true);
    waiters.resolve("a", "new");
    expect(await Promise.all([early, late])).toEqual(["old", "new"]);
  });

  test("a rejection reaches a wait even if it is awaited later", async () => {
    const waiters = new Waiters<string>();
    const wait = waiters.wait("a");
    waiters.reject("a", new Error("gone"));
    await new Promise((resolve) => setImmediate(resolve));
    await expect(wait).rejects.toThrow("gone");
    expect(waiters.has("a")).toBe(false);
  });

  test("a forgotten wait is never settled", async () => {
    const waiters = new Waiters<string, number>();
    const forgotten = waiters.wait("a");
    waiters.forget("a");
    waiters.resolve("a", 1);
    expect(await Promise.race([forgotten, Promise.resolve("still waits")])).toBe("still waits");
  });
});
