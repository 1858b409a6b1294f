import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, type Runtime } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { runCommand, sourceCondition } from "../../scripts/run-command.ts";
import { rows } from "../support/full.ts";
import { entriesOfType } from "../support/journal-probes.ts";
import { openDesk, type ServedDesk } from "./served-desk.ts";
import { openTasks } from "./task-server.ts";

interface Played {
  readonly effects: readonly string[];
  readonly outcome: string | undefined;
  /** Whether the process was killed. */
  readonly isKilled: boolean;
  readonly samples: number;
}

type Server = Pick<ServedDesk, "effects"> & { readonly options: object };

/** The process that is killed, from 1, and where. */
interface Kill {
  readonly run: number;
  readonly fault: string;
}

/**
 * Runs a turn in processes of its own, one of which is killed at the fault; this process, which has no agent, answers the
 * questions.
 */
async function play(server: Server, tool: string, { run, fault }: Kill): Promise<Played> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-asking-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "troupe.db");
  const options = JSON.stringify({ name: "inn", elicitation: true, sampling: {}, ...server.options });
  let isKilled = false;
  let number = 0;
  const runs = async (): Promise<string> => {
    number += 1;
    const environment = { NODE_OPTIONS: `--conditions=${sourceCondition}`, TROUPE_FAULT: number === run ? fault : "" };
    const program = join(import.meta.dirname, "asking-program.ts");
    const { ok, stdout, output } = await runCommand("node", [program, file, options, tool], { environment });
    if (!ok && (isKilled || !output.includes("SIGKILL"))) throw new Error(output);
    isKilled ||= !ok;
    return ok ? stdout.trim() : "killed";
  };
  for (let status = await runs(); status !== "completed"; status = await runs()) {
    if (status !== "waiting") continue;
    const people = await createRuntime({ agents: [], stores: sqliteStores(file) });
    await answer(people);
    await people.shutdown();
  }
  const stores = sqliteStores(file);
  const [settled] = await entriesOfType(stores, "guest", "tool.settled");
  const samples = await entriesOfType(stores, "guest", "generate.responded");
  await stores.close();
  return { effects: server.effects(), outcome: settled?.outcome, isKilled, samples: samples.length };
}

async function answer(people: Runtime): Promise<void> {
  for (const { requestId } of await people.requests({ status: "open" }))
    await people.decide(requestId, { verdict: "answered", result: "3", by: "ada" });
}

const parked = [
  // The result with the question is noted.
  { run: 1, fault: "tool.noted:1" },
  // The question is noted, and then open.
  { run: 1, fault: "tool.noted:2" },
  { run: 1, fault: "request.opened:1" },
  // The answer is about to be read, and noted.
  { run: 2, fault: "tool.intent:1" },
  { run: 2, fault: "tool.noted:1" },
];

test.each(rows(parked, ({ fault }) => fault === "tool.intent:1"))(
  "kill -9 of process $run at $fault, while a server waits for an answer: the call goes on, with one effect",
  async (kill) => {
    expect(await play(await openDesk("http modern", "inn"), "stay", kill)).toMatchObject({
      isKilled: true,
      effects: ["stayed"],
      outcome: "success",
    });
  },
);

const sending = [
  // Before the first request, and after the last one, nothing shows whether the server has got it.
  { run: 1, fault: "tool.intent:1", effects: [] },
  { run: 2, fault: "tool.noted:2", effects: [] },
  { run: 2, fault: "tool.effect:1", effects: ["stayed"] },
];

test.each(rows(sending, ({ fault }) => fault === "tool.effect:1"))(
  "kill -9 of process $run at $fault, while the request is under way: the outcome is unknown, and it is not repeated",
  async ({ effects, ...kill }) => {
    expect(await play(await openDesk("http modern", "inn"), "stay", kill)).toMatchObject({
      isKilled: true,
      effects,
      outcome: "outcome_unknown",
    });
  },
);

test("kill -9 of a process with its server on stdio: another server continues by the state", async () => {
  expect(
    await play(await openDesk("stdio modern", "inn"), "stay", { run: 1, fault: "request.opened:1" }),
  ).toMatchObject({
    isKilled: true,
    effects: ["stayed"],
    outcome: "success",
  });
});

test("kill -9 between the model calls of a server: none is paid twice", async () => {
  expect(await play(await openDesk("http modern", "inn"), "write", { run: 1, fault: "tool.noted:2" })).toMatchObject({
    isKilled: true,
    effects: ["written"],
    outcome: "success",
    samples: 2,
  });
});

test("kill -9 of the process that holds a call of the older era open: the outcome is unknown", async () => {
  expect(await play(await openDesk("http legacy", "inn"), "stay", { run: 1, fault: "request.opened:1" })).toMatchObject(
    {
      isKilled: true,
      effects: [],
      outcome: "outcome_unknown",
    },
  );
});

test("kill -9 while a task runs: another process follows the same task", async () => {
  const server = await openTasks();
  server.finish("completed");
  expect(await play(server, "report", { run: 1, fault: "tool.noted:1" })).toMatchObject({
    isKilled: true,
    effects: ["started task1"],
    outcome: "success",
  });
});
