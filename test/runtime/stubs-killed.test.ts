// The stubs of a session and how often they were used survive a process that is killed.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createRuntime } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { startProgram } from "../support/waiting-process.ts";
import { stubbedDesk } from "../support/stubbed-desk.ts";

const program = join(import.meta.dirname, "stubbing-program.ts");

test.each(["tool.intent:2", "commit.before:4"])("killed at %s", { timeout: 60_000 }, async (fault) => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-stubs-killed-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [database, file] = [join(folder, "jobs.db"), join(folder, "ran")];
  const { code } = await startProgram(program, [database, file], { TROUPE_FAULT: fault }).ended;
  expect(code).toBe("SIGKILL");

  const { desk, ran } = stubbedDesk();
  const runtime = await createRuntime({ agents: [desk], stores: sqliteStores(database), recovers: "own" });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.find("shop");
  await agent.start();
  expect(await agent.openTurn()?.result).toMatchObject({ status: "completed", toolCalls: 3 });
  expect(await toolTextsOf(agent)).toEqual(['{"broken":true}', '{"broken":false}', '{"broken":false}']);
  expect((await agent.getStubs()).stubs.map(({ used }) => used)).toEqual([1, 2, 0, 0]);
  expect([ran, existsSync(file)]).toEqual([[], false]);
});
