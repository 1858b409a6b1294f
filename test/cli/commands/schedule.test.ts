import { join } from "node:path";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, expect, test } from "vitest";
import { createRuntime, defineAgent } from "../../../src/index.ts";
import type { Schedule } from "../../../src/state/index.ts";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { troupe } from "../support/in-process.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-schedule-"));
const store = ["--store", join(folder, "jobs.db")];
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const schedule = (...words: readonly string[]) => troupe(["schedule", ...words, ...store]);

test("a schedule is added, listed, shown, paused, resumed and cancelled", async () => {
  const daily = ["add", "report", "Write it.", "--agent", "desk", "--cron", "0 9 * * *", "--timezone", "Europe/Berlin"];
  const added = await schedule(...daily, "--end", "2999-01-01T00:00Z", "--owner", "ann", "--if-missed", "all");
  expect(added).toMatchObject({ code: 0, notes: [] });
  expect(added.out).toEqual([
    expect.stringMatching(/^Schedule report: next .*\. A process with the agent "desk" opens its turns\.$/),
  ]);
  await schedule("add", "tick", "Look.", "--agent", "desk", "--every", "15m", "--agent-id", "bot", "--if-busy", "skip");
  const { out: listed } = await schedule("list");
  expect(listed[0]).toMatch(/^KEY +NEXT +TIMES +AGENT +RUNS/);
  expect(listed.slice(1)).toEqual([
    expect.stringMatching(/^report +.* 0 9 \* \* \* \(Europe\/Berlin\) +desk +0/),
    expect.stringMatching(/^tick +.* every 900 s +desk +0/),
  ]);
  expect((await schedule("list", "--owner", "ann")).out).toHaveLength(2);
  const page = await schedule("list", "--limit", "1", "--json");
  expect(page.out.map((line) => JSON.parse(line).key)).toEqual(["report"]);
  expect(page.notes[0]).toMatch(/^More: .*schedule list --after report/);
  const { out: shown } = await schedule("show", "tick");
  expect(shown.join("\n")).toMatch(/agent +desk, bot\n.*\n?times +every 900 s/);
  expect((await schedule("pause", "tick")).out).toEqual(["Schedule tick: next paused."]);
  expect(JSON.parse((await schedule("show", "tick", "--json")).out[0] ?? "").pausedAt).toBeGreaterThan(0);
  expect((await schedule("resume", "tick")).out[0]).toMatch(/^Schedule tick: next .*\d/);
  expect((await schedule("cancel", "tick")).out).toEqual(["Cancelled: tick."]);
  expect((await schedule("list", "--agent-id", "bot")).out[0]).toMatch(/^There are no schedules in /);
});

test("run-now requests a run once per key, and cancel removes what has not run", async () => {
  await schedule("add", "nightly", "Look.", "--agent", "desk", "--every", "1d", "--agent-id", "bot");
  const requested = 'Requested a run of nightly. A process with the agent "desk" opens its turn within seconds.';
  for (const key of ["a", "a", "b"]) {
    expect((await schedule("run-now", "nightly", "--key", key)).out).toEqual([requested]);
  }
  expect((await schedule("run-now", "nightly")).out).toEqual([requested]);
  expect((await schedule("show", "nightly")).out.join("\n")).toMatch(/requested +3 runs/);
  const { asked } = JSON.parse((await schedule("show", "nightly", "--json")).out[0] ?? "") as Schedule;
  expect(asked?.map(({ key }) => key).slice(0, 2)).toEqual(["a", "b"]);
  const desk = defineAgent({ name: "desk", model: scriptedModel("done") });
  const runtime = await createRuntime({ agents: [desk], stores: sqliteStores(join(folder, "jobs.db")) });
  await expect.poll(async () => (await runtime.turns({ status: "completed" })).length).toBe(3);
  await runtime.shutdown();
  expect((await schedule("run-now", "nightly", "--key", "a")).out).toEqual([
    expect.stringMatching(/^This run of nightly was handled before: opened, bot#\d\.$/),
  ]);
  await schedule("cancel", "nightly");
});

test.each([
  [["run-now", "nothing"], /there is no schedule "nothing"/],
  [["run-now", "there", "--key", "ä"], /key/],
  [["add", "k", "x", "--agent", "desk", "--every", "1h", "--if-busy", "steer"], /each run has a new agent/],
  [["show", "nothing"], /there is no schedule "nothing"/],
  [["cancel", "nothing"], /there is no schedule "nothing"/],
  [["add", "k", "x", "--agent", "desk"], /needs exactly one of at, every and cron/],
  [["add", "k", "x", "--agent", "desk", "--cron", "99 * * * *"], /Invalid value for minute: 99/],
  [["add", "k", "x", "--agent", "desk", "--every", "soon"], /expected a duration/],
  [["add", "k", "x", "--agent", "desk", "--every", "1h", "--if-missed", "twice"], /ifMissed is the text "twice"/],
])("%j is refused with the reason", async (words, message) => {
  await schedule("add", "there", "x", "--agent", "desk", "--every", "1h");
  const { code, notes } = await schedule(...words);
  expect(code).not.toBe(0);
  expect(notes.join("\n")).toMatch(message);
});
