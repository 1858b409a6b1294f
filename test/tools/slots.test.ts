import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSlots, type ReleaseSlot } from "../../src/tools/index.ts";

const never = new AbortController().signal;

describe("slots", () => {
  test("no more run than the limit, and waiters are served in order", async () => {
    const slots = createSlots(2);
    const order: string[] = [];
    const wait = async (name: string): Promise<ReleaseSlot> => {
      const release = await slots.acquire(never);
      order.push(name);
      return release;
    };
    const first = await wait("first");
    const second = await wait("second");
    const third = wait("third");
    const fourth = wait("fourth");
    expect([slots.taken, slots.waiting, order]).toEqual([2, 2, ["first", "second"]]);
    second();
    await third;
    first();
    await fourth;
    expect([slots.taken, slots.waiting]).toEqual([2, 0]);
    expect(order).toEqual(["first", "second", "third", "fourth"]);
  });

  test("releasing twice frees one slot", async () => {
    const slots = createSlots(1);
    const release = await slots.acquire(never);
    release();
    release();
    expect(slots.taken).toBe(0);
    await slots.acquire(never);
    expect(slots.taken).toBe(1);
  });

  test("an aborted waiter rejects with the signal's reason and takes no slot", async () => {
    const slots = createSlots(1);
    const release = await slots.acquire(never);
    const controller = new AbortController();
    const aborted = slots.acquire(controller.signal);
    const patient = slots.acquire(never);
    controller.abort(new Error("turn stopped"));
    await expect(aborted).rejects.toThrow("turn stopped");
    release();
    (await patient)();
    expect([slots.taken, slots.waiting]).toEqual([0, 0]);
    await expect(slots.acquire(controller.signal)).rejects.toThrow("turn stopped");
    expect(slots.taken).toBe(0);
  });

  test("an abort after the slot was granted changes nothing", async () => {
    const slots = createSlots(1);
    const release = await slots.acquire(never);
    const controller = new AbortController();
    const next = slots.acquire(controller.signal);
    release();
    controller.abort();
    (await next)();
    expect(slots.taken).toBe(0);
  });

  test("any mixture of acquiring, releasing and aborting ends with all slots free", async () => {
    const steps = fc.array(fc.constantFrom("acquire", "release", "abort"), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), steps, async (limit, script) => {
        const slots = createSlots(limit);
        const held: ReleaseSlot[] = [];
        const controllers: AbortController[] = [];
        const ended: Promise<void>[] = [];
        for (const step of script) {
          if (step === "acquire") {
            const controller = new AbortController();
            controllers.push(controller);
            ended.push(
              slots.acquire(controller.signal).then(
                (release) => void held.push(release),
                () => undefined,
              ),
            );
          } else if (step === "release") held.shift()?.();
          else controllers.shift()?.abort();
          await Promise.resolve();
          expect(slots.taken).toBeLessThanOrEqual(limit);
          expect(slots.waiting === 0 || slots.taken === limit).toBe(true);
        }
        for (const controller of controllers) controller.abort();
        await Promise.all(ended);
        for (const release of held) release();
        expect([slots.taken, slots.waiting]).toEqual([0, 0]);
      }),
    );
  });

  test.each([0, -1, 1.5, Number.NaN])("a limit of %s is refused", (limit) => {
    expect(() => createSlots(limit)).toThrow(/whole number of at least 1/);
  });
});
