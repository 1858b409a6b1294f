import { describe, expect, test } from "vitest";
import { Waiters } from "../../src/base/index.ts";

describe("waiters", () => {
  test("everyone who waits for a key is given its value, and no waiter of another key", async () => {
    const waiters = new Waiters<string, number>();
    const both = [waiters.wait("a"), waiters.wait("a")];
    const other = waiters.wait("b");
    waiters.resolve("a", 1);
    expect(await Promise.all(both)).toEqual([1, 1]);
    expect([waiters.has("a"), waiters.has("b"), waiters.keys()]).toEqual([false, true, ["b"]]);
    waiters.resolve("b", 2);
    expect(await other).toBe(2);
  });

  test("what was looked up for those who waited is not given to those who came meanwhile", async () => {
    const waiters = new Waiters<string, string>();
    const early = waiters.wait("a");
    const waiting = waiters.of("a");
    const late = waiters.wait("a");
    waiters.resolve("a", "old", waiting);
    expect(waiters.has("a")).toBe(true);
    waiters.resolve("a", "new");
    expect(await Promise.all([early, late])).toEqual(["old", "new"]);
  });

  test("a rejection reaches those who wait, also where they look at it later", async () => {
    const waiters = new Waiters<string>();
    const wait = waiters.wait("a");
    waiters.reject("a", new Error("gone"));
    await new Promise((resolve) => setImmediate(resolve));
    await expect(wait).rejects.toThrow("gone");
    expect(waiters.has("a")).toBe(false);
  });

  test("who is forgotten is settled by nothing that comes later", async () => {
    const waiters = new Waiters<string, number>();
    const forgotten = waiters.wait("a");
    waiters.forget("a");
    waiters.resolve("a", 1);
    expect(await Promise.race([forgotten, Promise.resolve("still waits")])).toBe("still waits");
  });
});
