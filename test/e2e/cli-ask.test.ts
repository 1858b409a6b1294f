// The command in real use: separate processes, one store, no key and no network.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { TroupeEvent } from "../../src/state/index.ts";
import { inFull, rows } from "../support/full.ts";
import { allotment, answer, type Ended, eventsIn, question, runCli, startCli, workFolder } from "./cli-process.ts";

let folder: ReturnType<typeof workFolder>;
beforeEach(() => {
  folder = workFolder(allotment);
});
afterEach(() => folder.remove());

const ask = ["ask", "--files", "notes", "--question", question];

/** The answer of an undisturbed run. */
let undisturbed: Ended;
beforeAll(async () => {
  const place = workFolder(allotment);
  undisturbed = await runCli(place.path, [...ask, "--json"]);
  place.remove();
});

describe("troupe ask", () => {
  test("answers with sources, shows the agents' work, and how to look again", async () => {
    const { stdout, stderr, code } = await runCli(folder.path, ask);
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(answer);
    expect(stdout).toMatch(/^AGENT +PARENT +TURNS +STEPS +TOOL CALLS +TOKENS +COST +TIME +STOP REASON$/m);
    expect(stdout).toMatch(/^├─ reader ~[0-9a-f]{6} +ask-\w+ .* completed$/m);
    expect(stderr).toMatch(/^No OPENAI_API_KEY: the rule-based offline engine answers .*\n$/);
    const [, agentId] = /main\.ts show (ask-[a-z]+)$/m.exec(stdout) ?? [];
    const shown = await runCli(folder.path, ["show", agentId ?? "none"]);
    expect(shown.stdout).toContain(question);
    expect(shown.stdout).toMatch(/step 1: search_files/);
    expect(existsSync(join(folder.path, ".troupe", "ask.db"))).toBe(true);
  });

  inFull(() => {
    test("--quiet prints only the answer", async () => {
      const { stdout, code } = await runCli(folder.path, [...ask, "--quiet"]);
      expect(code).toBe(0);
      expect(stdout).toMatch(answer);
      expect(stdout).not.toContain("AGENT");
      expect(stdout).not.toContain("begins");
    });
  });

  test("--json prints events only, each valid JSON", async () => {
    const { stdout, code } = undisturbed;
    expect(code).toBe(0);
    const events = eventsIn(stdout);
    const types = new Set(events.map((event) => event.type));
    expect([...types]).toEqual(
      expect.arrayContaining(["turn.started", "text.delta", "subagent.spawned", "tool.completed", "turn.completed"]),
    );
    const cursors = events.flatMap((event) => event.cursor ?? []);
    expect(new Set(cursors).size).toBe(cursors.length);
  });

  inFull(() => {
    test("--max-readers limits the number of files that are read", async () => {
      const { stdout } = await runCli(folder.path, [...ask, "--json", "--max-readers", "1"]);
      expect(eventsIn(stdout).filter((event) => event.type === "subagent.spawned")).toHaveLength(1);
    });

    test("each question is a separate job, and --resume of a finished one prints its answer again", async () => {
      await runCli(folder.path, ask);
      const other = await runCli(folder.path, ["ask", "--files", "notes", "--question", "How much is the yearly fee?"]);
      const again = await runCli(folder.path, ["ask", "--resume", "--quiet"]);
      expect(again.stdout).toContain("The yearly fee is 85 euros. (fees.md:3)");
      expect(other.stdout).toContain(again.stdout.trim());
      const { stdout } = await runCli(folder.path, ["list", "--json"]);
      expect(stdout.trim().split("\n")).toHaveLength(2);
    });
  });

  inFull(() => {
    test("--inspect serves the live agents while they work, at a URL printed on stderr", async () => {
      const process = startCli(folder.path, [...ask, "--json", "--inspect"], { TROUPE_OFFLINE_SPEED: "10" });
      await process.line((line) => line.includes('"type":"text.delta"'));
      const [url] = /http:\/\/127\.0\.0\.1:\d+\/\S*/.exec(process.errorsSoFar()) ?? ["none"];
      const page = await fetch(url);
      expect(page.status).toBe(200);
      expect(await page.text()).toContain("<html");
      process.signal("SIGTERM");
      expect((await process.ended).code).toBe(143);
      await expect(fetch(url)).rejects.toThrow("fetch failed");
    });
  });

  inFull(() => {
    test("a reader that closes the pipe does not make the command fail", async () => {
      const process = startCli(folder.path, [...ask, "--json"], { TROUPE_OFFLINE_SPEED: "50" });
      await process.line(() => true);
      process.closeOutput();
      const { stderr, code } = await process.ended;
      expect({ stderr: stderr.replace(/^No OPENAI_API_KEY.*\n/, ""), code }).toEqual({ stderr: "", code: 0 });
    });
  });
});

/** Calls that started twice within one attempt, and steps that were answered twice. */
function repetitions(events: readonly TroupeEvent[]): string[] {
  const seen = new Set<string>();
  return events.flatMap((event) => {
    const key =
      event.type === "tool.started"
        ? `${event.callId} attempt ${event.attempt}`
        : event.type === "model.responded"
          ? `${event.turnId} step ${event.step}`
          : undefined;
    if (key === undefined || !seen.has(key)) {
      if (key !== undefined) seen.add(key);
      return [];
    }
    return [key];
  });
}

/** The lead's answer, from its last event. */
function answerIn(events: readonly TroupeEvent[]): string | undefined {
  const end = events.find((event) => event.type === "turn.completed" && event.parentAgentId === null);
  return end?.type === "turn.completed" ? end.text : undefined;
}

describe("a killed process", () => {
  const points = ["model.effect:1", "model.effect:4", "tool.effect:2", "commit.after:9", "commit.before:12"];
  test.each(rows(points, ["tool.effect:2"]))(
    "at %s is continued by --resume, without flags and without doing anything twice",
    async (fault) => {
      const killed = await runCli(folder.path, ask, { TROUPE_FAULT: fault });
      expect(killed.code).toBe("SIGKILL");
      const resumed = await runCli(folder.path, ["ask", "--resume", "--json"]);
      expect(resumed.code, resumed.stderr).toBe(0);
      const events = eventsIn(resumed.stdout);
      expect(repetitions(events)).toEqual([]);
      const cursors = events.flatMap((event) => event.cursor ?? []);
      expect(new Set(cursors).size).toBe(cursors.length);
      expect(answerIn(events)).toMatch(answer);
      expect(answerIn(events)).toBe(answerIn(eventsIn(undisturbed.stdout)));
    },
  );
});

describe("Ctrl-C", () => {
  test("pauses at a safe point, and --resume continues", async () => {
    const process = startCli(folder.path, [...ask, "--json"], { TROUPE_OFFLINE_SPEED: "30" });
    await process.line((line) => line.includes('"type":"text.delta"'));
    process.signal("SIGINT");
    const { code, stderr, stdout } = await process.ended;
    expect(code, stderr).toBe(130);
    expect(stderr).toMatch(/Paused\. Resume with: node .*main\.ts ask --resume\n/);
    const paused = eventsIn(stdout);
    // The calls in flight completed: no paid work is lost.
    expect(paused.filter((event) => event.type === "turn.failed" || event.type === "step.restarted")).toEqual([]);
    expect((await runCli(folder.path, ["list"])).stdout).toMatch(/unfinished, paused/);

    const resumed = await runCli(folder.path, ["ask", "--resume", "--json"]);
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(repetitions(eventsIn(resumed.stdout))).toEqual([]);
    expect(answerIn(eventsIn(resumed.stdout))).toMatch(answer);
  });

  inFull(() => {
    test("twice exits immediately, and can still be resumed", async () => {
      const process = startCli(folder.path, [...ask, "--json"], { TROUPE_OFFLINE_SPEED: "5" });
      await process.line((line) => line.includes('"type":"text.delta"'));
      // Words arrive every 200 ms or more: while they do, the process is still alive.
      process.onOutput(() => process.signal("SIGINT"));
      const { code, stderr } = await process.ended;
      expect(code, stderr).toBe(130);
      expect(stderr).toMatch(/Left at once; resume with: node .*main\.ts ask --resume\n$/);
      const resumed = await runCli(folder.path, ["resume", "--quiet"]);
      expect(resumed.code, resumed.stderr).toBe(0);
      expect(resumed.stdout).toMatch(answer);
    });
  });
});
