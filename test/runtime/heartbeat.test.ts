import { expect, it, vi } from "vitest";
import { StoreUnavailableError } from "../../src/index.ts";
import { Heartbeat } from "../../src/runtime/core/heartbeat.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";

it("leases are checked after a pause of the process, and again at a later beat if the stores did not answer", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  const clock = createFakeClock();
  const key = { tenant: "t", agentId: "a" };
  let isDown = true;
  let looks = 0;
  const holder = async (): Promise<undefined> => {
    looks += 1;
    if (isDown) throw new StoreUnavailableError("away");
    return undefined;
  };
  const given: unknown[] = [];
  const heartbeat = new Heartbeat({
    stores: { holder },
    clock,
    giveSign: async () => undefined,
    leaseMs: 3_000,
    isAtWork: () => true,
    leases: () => (given.length > 0 ? [] : [{ key, epoch: 1, discard: (why) => given.push(why) }]),
    onBeat: () => undefined,
  });
  // The process was suspended.
  clock.advance(10_000);
  heartbeat.start();
  const beat = async (): Promise<void> => {
    clock.advance(1_000);
    await loopTurns(2);
  };
  await beat();
  expect([looks, given.length]).toEqual([1, 0]);
  isDown = false;
  await beat();
  expect([looks, given.length]).toEqual([2, 1]);
  await beat();
  expect(looks).toBe(2);
  heartbeat.stop();
  warned.mockRestore();
});
