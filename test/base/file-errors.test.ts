import { appendFileSync, existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { describeFileError, isNoSpace } from "../../src/base/index.ts";
import { temporaryFile } from "../stores/temporary-file.ts";

function errorOf(work: () => void): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

test.skipIf(!existsSync("/dev/full"))("a full disk is reported with the path and what to do", () => {
  const error = errorOf(() => appendFileSync("/dev/full", "x"));
  expect(isNoSpace(error)).toBe(true);
  expect(describeFileError("/srv/run.json", error)).toBe(
    "no space is left for /srv/run.json (ENOSPC); free space on its disk and try again",
  );
});

test("any other file error is reported with the path", () => {
  const path = temporaryFile();
  mkdirSync(path);
  const error = errorOf(() => appendFileSync(path, "x"));
  expect(isNoSpace(error)).toBe(false);
  expect(describeFileError(path, error)).toMatch(/^\/.* cannot be written: EISDIR/);
  expect(describeFileError(dirname(path), "odd")).toMatch(/cannot be written: odd$/);
});
