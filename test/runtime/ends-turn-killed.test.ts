// A turn that a tool ends, in a process that is killed at each point between the tool's result and the turn's end.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createRuntime } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { rows } from "../support/full.ts";
import { orderFault } from "../support/journal-probes.ts";
import { startProgram } from "../support/waiting-process.ts";
import { endingDesk } from "./ends-turn-program.ts";

const program = join(import.meta.dirname, "ends-turn-program.ts");

/** The points from the effect of the first tool to the end of the turn, in each commit before and after it. */
const faults = [
  "tool.effect:1",
  "tool.result:1",
  "tool.result:2",
  ...["before", "after", "acknowledged"].flatMap((point) => [4, 5, 6, 7].map((hit) => `commit.${point}:${hit}`)),
  "hook.effect:1",
  "hook.effect:2",
  "turn.result:1",
];

test.each(rows(faults, ["tool.result:2", "commit.before:6", "commit.after:7", "hook.effect:2", "turn.result:1"]))(
  "killed at %s",
  { timeout: 60_000 },
  async (fault) => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-ends-turn-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const [database, file] = [join(folder, "jobs.db"), join(folder, "ran")];
    const { code } = await startProgram(program, [database, file], { TROUPE_FAULT: fault }).ended;
    expect(code).toBe("SIGKILL");

    const stores = sqliteStores(database);
    const runtime = await createRuntime({ agents: [endingDesk(file)], stores, recovers: "own" });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.find("a");
    await agent.start();
    const result = await agent.turn("a#1").result;
    expect(result).toMatchObject({ status: "completed", text: '{"plan":"b"}', output: { plan: "b" } });
    const messages = await agent.getMessages();
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool", "assistant"]);
    expect(orderFault(messages)).toBeUndefined();
    // A keyed tool may run again after a crash, but at most once more.
    const ran = readFileSync(file, "utf8").trim().split("\n");
    expect(ran.filter((name) => name === "submit").length).toBeLessThanOrEqual(2);
  },
);
