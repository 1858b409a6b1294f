// Cases whose outcome depends on the repetition, and one that is skipped. The runs before are counted in a folder.
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runCase } from "../../../../src/testing/index.ts";
import { desk } from "../../../testing/evals-cast.ts";

const folder = process.env["TROUPE_TEST_FOLDER"] ?? "";

test("passes every other time", async () => {
  const before = readdirSync(folder).filter((name) => name.startsWith("run-")).length;
  writeFileSync(join(folder, `run-${before}`), "");
  const result = await runCase(
    desk(before % 2 === 0 ? "none" : "wrong amount"),
    "Refund order 7, password=hunter2hunter2",
  );
  expect(result).toMatchOutput({ refunded: 40 });
});

test("is not ready", ({ skip }) => {
  expect(folder).not.toBe("");
  skip();
});
