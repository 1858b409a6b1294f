// A case that passes, one that runs until vitest cancels the run, and one that comes after it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runCase } from "../../../../src/testing/index.ts";
import { desk } from "../../../testing/evals-cast.ts";

test("ends before the signal", async () => {
  expect(await runCase(desk(), "Refund order 7.")).toEndWith("completed");
});

test("runs at the signal", async ({ signal }) => {
  const folder = process.env["TROUPE_TEST_FOLDER"];
  // `troupe eval` of the whole folder must not wait for a signal.
  if (process.env["TROUPE_TEST_LONG"] !== "1" || folder === undefined) return;
  const cancelled = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => cancelled.resolve());
  writeFileSync(join(folder, "running"), "");
  await cancelled.promise;
  expect(signal.aborted).toBe(true);
});

test("comes after the signal", async () => {
  expect(await runCase(desk(), "Refund order 8.")).toEndWith("completed");
});
