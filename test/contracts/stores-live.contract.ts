import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LiveAddress, Stores } from "../../src/stores/index.ts";

/** Two clients of the same stores: through one object, or each through its own. */
export type OpenTwo = () => Promise<{ readonly one: Stores; readonly other: Stores }>;

const place = (processId: string, rootAgentId = "root"): LiveAddress => ({ tenant: "t", rootAgentId, processId });

/** Waits for a message from another connection. */
export async function until(holds: () => boolean, again: () => void = () => undefined): Promise<void> {
  const end = performance.now() + 10_000;
  while (!holds()) {
    if (performance.now() > end) throw new Error("the condition was not met within 10 s");
    again();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The contract of every live channel, for stores in one process and in several. */
export function describeLiveChannel(name: string, open: OpenTwo): void {
  describe(`live messages (${name})`, () => {
    let one: Stores;
    let other: Stores;
    const asked: string[] = [];
    beforeEach(async () => {
      asked.length = 0;
      ({ one, other } = await open());
      one.live.onAsked("owner", (tenant, rootAgentId) => asked.push(`${tenant} ${rootAgentId}`));
    });
    afterEach(async () => {
      await one.close();
      await other.close();
    });

    /** A follower that its owner knows. */
    const followed = async (processId: string, rootAgentId = "root") => {
      const messages: string[] = [];
      const following = other.live.follow(place(processId, rootAgentId), (message) => messages.push(message));
      await until(() => one.live.isFollowed(place("owner", rootAgentId)));
      return { messages, following };
    };

    test("reach all followers of the tree, in order, with any characters in them", async () => {
      const sent = ["1", "two words", "日本語 ✓", "\n", '{"a":"\\u0000"}', ""];
      const first = await followed("a");
      const second = await followed("b");
      await until(() => asked.length >= 2);
      for (const message of sent) one.live.send(place("owner"), message);
      for (const { messages } of [first, second]) {
        await until(() => messages.length >= sent.length);
        expect(messages).toEqual(sent);
      }
    });

    test("do not reach other trees, other tenants, or followers that ended", async () => {
      const odd = "a/b {c}%2F";
      const { messages, following } = await followed("a", odd);
      const others = await followed("a", "a");
      for (const root of [odd, "a/b", "a%2Fb {c}%2F"]) one.live.send(place("owner", root), root);
      one.live.send({ ...place("owner", odd), tenant: "u" }, "other tenant");
      one.live.send(place("owner", odd), "last");
      await until(() => messages.includes("last"));
      expect(messages).toEqual([odd, "last"]);
      following.end();
      one.live.send(place("owner", odd), "late");
      one.live.send(place("owner", "a"), "to the other");
      await until(() => others.messages.length > 0);
      expect([messages, others.messages]).toEqual([[odd, "last"], ["to the other"]]);
    });

    test("a new follower asks for the open state and may ask again; the answer is a message", async () => {
      const { messages, following } = await followed("a");
      await until(() => asked.length >= 1);
      one.live.send(place("owner"), "open");
      await until(() => messages.length === 1);
      following.ask();
      await until(() => asked.length >= 2);
      expect(new Set(asked)).toEqual(new Set(["t root"]));
    });

    test("a process neither receives its own messages, nor asks itself, nor counts itself as a follower", async () => {
      const own: string[] = [];
      other.live.onAsked("a", () => undefined);
      one.live.follow(place("owner"), (message) => own.push(message));
      await until(() => other.live.isFollowed(place("a")));
      expect(asked).toEqual([]);
      expect(one.live.isFollowed(place("owner"))).toBe(false);
      const { messages } = await followed("a");
      one.live.send(place("owner"), "mine");
      other.live.send(place("a"), "theirs");
      await until(() => messages.length + own.length >= 2);
      expect([messages, own]).toEqual([["mine"], ["theirs"]]);
      expect(one.live.isFollowed(place("owner", "elsewhere"))).toBe(false);
    });

    test("an owner that starts late is notified of existing followers", async () => {
      await followed("a");
      const late: string[] = [];
      other.live.onAsked("late", (_tenant, rootAgentId) => late.push(rootAgentId));
      await until(() => other.live.isFollowed(place("late")));
      expect(other.live.isFollowed(place("late", "nothing"))).toBe(false);
    });
  });
}
