import { join } from "node:path";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, expect, test } from "vitest";
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

test.each([
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
