import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { completeLock, type Lock } from "../../scripts/lock-file.ts";
import { repositoryRoot } from "../../scripts/run-command.ts";

test("package-lock.json names every optional package, otherwise npm ci refuses it", () => {
  const lock = JSON.parse(readFileSync(join(repositoryRoot, "package-lock.json"), "utf8")) as Lock;
  expect(completeLock(lock).added, "run: node scripts/complete-lock.ts").toEqual([]);
});

test("packages of other platforms are added according to their names, and nothing else changes", () => {
  const tool = {
    version: "1.0.0",
    dev: true,
    optionalDependencies: { "@a/tool-linux-x64-musl": "1.0.0", "@a/tool-win32-x64": "1.0.0", encoding: "^2" },
  };
  const lock = {
    packages: { "": {}, "node_modules/@a/tool-win32-x64": { version: "1.0.0" }, "node_modules/tool": tool },
  };
  expect(completeLock(lock)).toEqual({
    added: ["@a/tool-linux-x64-musl@1.0.0"],
    completed: {
      packages: {
        ...lock.packages,
        "node_modules/@a/tool-linux-x64-musl": {
          version: "1.0.0",
          cpu: ["x64"],
          libc: ["musl"],
          os: ["linux"],
          dev: true,
          optional: true,
        },
      },
    },
  });
});
