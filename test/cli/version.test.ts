import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { troupe } from "./support/in-process.ts";

test("`troupe --version` prints the version of the package, and nothing else", async () => {
  const { version } = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8"));
  expect(await troupe(["--version"])).toEqual({ code: 0, out: [version], notes: [] });
});
