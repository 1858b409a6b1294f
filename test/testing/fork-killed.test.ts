// Forks of runs whose process was killed, and forks whose own process is killed.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createRuntime } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { fork } from "../../src/testing/index.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { startProgram } from "../support/waiting-process.ts";
import { deskOf } from "./forking-program.ts";

const program = join(import.meta.dirname, "forking-program.ts");

test("a payment whose process was killed is made once, in no fork, and in no restart of a fork", {
  timeout: 60_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-fork-killed-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [database, payments] = [join(folder, "jobs.db"), join(folder, "payments")];
  const killed = async (mode: "origin" | "fork"): Promise<string> => {
    const started = startProgram(program, [mode, database, payments]);
    const line = await started.firstLine;
    started.kill();
    await started.ended;
    return line;
  };
  await killed("origin");
  const paid = (): string => readFileSync(payments, "utf8");
  expect(paid()).toBe("payment\n");

  const desk = deskOf(payments, async () => undefined);
  const stores = sqliteStores(database);
  const made = await fork({ stores, agentId: "shop" }, { at: { turn: 1 }, agents: desk });
  expect(await made.turn.result).toMatchObject({ status: "completed", text: "Done." });
  expect(await toolTextsOf(made.agent)).toEqual([expect.stringContaining("The tool pay was not run"), "seen"]);
  await made.close();
  await stores.close();

  const forkId = await killed("fork");
  const runtime = await createRuntime({ agents: [desk], stores: sqliteStores(database), recovers: "own" });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.find(forkId);
  await agent.start();
  expect(await agent.openTurn()?.result).toMatchObject({ status: "completed", text: "Done." });
  expect(await toolTextsOf(agent)).toEqual([expect.stringContaining("The tool pay was not run"), "seen"]);
  expect(paid()).toBe("payment\n");
});
