import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { onceAMachine } from "./once-a-machine.ts";

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "troupe-once-"));
  onTestFinished(() => rmSync(made, { recursive: true }));
  return made;
}

const never = (): boolean => false;

test("one of several concurrent callers does the work, and the others wait for it", async () => {
  const place = join(folder(), "cache");
  let works = 0;
  let isDone = false;
  const { promise: fetched, resolve: fetch } = Promise.withResolvers<void>();
  const one = (): Promise<void> =>
    onceAMachine(
      place,
      () => isDone,
      async () => {
        works += 1;
        await fetched;
        isDone = true;
      },
    );
  const all = Promise.all([one(), one(), one()]);
  fetch();
  await all;
  expect(works).toBe(1);
  await one();
  expect(works).toBe(1);
});

test("after a failure the next caller works", async () => {
  const place = folder();
  const failing = onceAMachine(place, never, () => Promise.reject(new Error("no network")));
  await expect(failing).rejects.toThrow("no network");
  let worked = false;
  await onceAMachine(place, never, () => {
    worked = true;
    return Promise.resolve();
  });
  expect(worked).toBe(true);
});

test("the lock of a killed process is taken over", async () => {
  const place = join(folder(), "cache");
  mkdirSync(place);
  writeFileSync(join(place, "lock"), "");
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(join(place, "lock"), longAgo, longAgo);
  let isDone = false;
  await onceAMachine(
    place,
    () => isDone,
    () => {
      isDone = true;
      return Promise.resolve();
    },
  );
  expect(isDone).toBe(true);
});
