import { array, assert, boolean, integer, property, record } from "fast-check";
import { expect, it } from "vitest";
import { createTimerQueue } from "../../src/base/index.ts";

it("returns timers by time and then by age, without removed ones", () => {
  const timers = array(record({ at: integer({ min: 0, max: 1000 }), isRemoved: boolean() }), { maxLength: 60 });
  assert(
    property(timers, (planned) => {
      const queue = createTimerQueue();
      const taken: number[] = [];
      const removals = planned.map(({ at }, index) => queue.add(at, () => taken.push(index)));
      planned.forEach(({ isRemoved }, index) => isRemoved && removals[index]?.());
      const kept = planned.map(({ at, isRemoved }, index) => ({ at, isRemoved, index })).filter((t) => !t.isRemoved);
      expect(queue.size).toBe(kept.length);
      for (let run = queue.takeDue(1000); run !== undefined; run = queue.takeDue(1000)) run();
      expect(taken).toEqual(
        kept.sort((one, other) => one.at - other.at || one.index - other.index).map((t) => t.index),
      );
      expect(queue.size).toBe(0);
    }),
    { numRuns: 1000 },
  );
});

it("keeps the order when an earlier timer replaces a removed one", () => {
  const queue = createTimerQueue();
  const taken: number[] = [];
  const remove = new Map([0, 10, 1, 11, 12, 2, 3].map((at) => [at, queue.add(at, () => taken.push(at))]));
  remove.get(11)?.();
  for (let run = queue.takeDue(20); run !== undefined; run = queue.takeDue(20)) run();
  expect(taken).toEqual([0, 1, 2, 3, 10, 12]);
});

it("returns no timer that is not due or was added after the mark", () => {
  const queue = createTimerQueue();
  queue.add(5, () => {});
  const mark = queue.added;
  queue.add(3, () => {});
  expect(queue.nextAt()).toBe(3);
  expect(queue.takeDue(2)).toBeUndefined();
  expect(queue.takeDue(9, mark)).toBeUndefined();
  expect(queue.takeDue(3)).toBeDefined();
  expect(queue.takeDue(9, mark)).toBeDefined();
});
