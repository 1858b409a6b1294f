import { describe, expect, test } from "vitest";
import { viewModeOf, jsonReporter, plainReporter, quietReporter } from "../../../src/cli/view/create-reporter.ts";
import type { Ending, Reporter } from "../../../src/cli/view/reporter.ts";
import {
  agentSample,
  completedSample,
  deltaSample,
  eventSample,
  failedSample,
  readerSample,
  stoppedSample,
} from "../support/samples.ts";

function ending(changes: Partial<Ending> = {}): Ending {
  const agents = [
    agentSample({ endedAt: 9, stopReason: "completed", costMicros: 1_000 }),
    readerSample("3fa9c1d2", { endedAt: 8, stopReason: "token_limit", costMicros: 2_000 }),
  ];
  return { end: completedSample(), agents, accounts: [], now: 9, remarks: ["Show it again: show x"], ...changes };
}

function tell(reporter: Reporter, end: Ending): void {
  reporter.begin(["Question: What is it?"]);
  reporter.past([]);
  reporter.event(eventSample({ type: "turn.started", number: 1, prompt: "What is it?" }));
  reporter.event(deltaSample("It"));
  reporter.notice("Pausing");
  reporter.end(end);
  reporter.close();
}

function record(make: (out: (line: string) => void, note: (line: string) => void) => Reporter, end: Ending) {
  const out: string[] = [];
  const notes: string[] = [];
  tell(
    make(
      (line) => out.push(line),
      (line) => notes.push(line),
    ),
    end,
  );
  return { out, notes };
}

const width = (): number => 120;
const plain = (out: (line: string) => void, note = out): Reporter => plainReporter(out, note, width);
const quiet = (out: (line: string) => void, note: (line: string) => void): Reporter => quietReporter(out, note, width);

describe("plain lines", () => {
  test("contain the events, the answer, and a table with the totals of all agents", () => {
    expect(record(plain, ending()).out).toEqual([
      "Question: What is it?",
      "    0 ms  lead ask-mibodu: begins “What is it?”",
      "Pausing",
      "",
      "It is so. (a.md:1)",
      "",
      "AGENT              PARENT      TURNS  STEPS  TOOL CALLS  TOKENS     COST  TIME  STOP REASON",
      "lead ask-mibodu    -               1      2           3    1.2k  $0.0010  0 ms  completed",
      "└─ reader ~3fa9c1  ask-mibodu      1      2           3    1.2k  $0.0020  0 ms  token_limit",
      "total                              2      4           6    2.4k  $0.0030  0 ms",
      "",
      "Show it again: show x",
    ]);
  });

  test("of an answer are wrapped at spaces on a terminal, and its lists stay indented", () => {
    const text = `Two reasons:\n  - ${"frost bursts ".repeat(6)}\n  - price`;
    const end = { ...completedSample(), text };
    const out: string[] = [];
    tell(
      plainReporter(
        (line) => out.push(line),
        () => {},
        () => 40,
      ),
      ending({ end }),
    );
    expect(out.slice(out.indexOf("Two reasons:"), out.indexOf("  - price") + 1)).toEqual([
      "Two reasons:",
      "  - frost bursts frost bursts frost",
      "  bursts frost bursts frost bursts frost",
      "  bursts",
      "  - price",
    ]);
  });

  test("of a resumed job contain the number of stored events, once", () => {
    const out: string[] = [];
    const reporter = plain((line) => out.push(line));
    reporter.past([completedSample()]);
    reporter.event(eventSample({ type: "lifecycle.changed", status: "paused" }));
    reporter.event(eventSample({ type: "lifecycle.changed", status: "paused" }));
    expect(out).toEqual([
      "continues after 1 stored event",
      "    0 ms  lead ask-mibodu: paused",
      "    0 ms  lead ask-mibodu: paused",
    ]);
  });

  test("wait while a person is asked", () => {
    const out: string[] = [];
    const reporter = plain((line) => out.push(line));
    const release = reporter.hold();
    reporter.notice("Pausing");
    expect(out).toEqual([]);
    release();
    reporter.notice("Paused");
    expect(out).toEqual(["Pausing", "Paused"]);
  });

  test("have a table that fits 80 columns, with its tree", () => {
    const agents = [
      agentSample({ endedAt: 9, stopReason: "completed" }),
      readerSample("3fa9c1d2", { endedAt: 8, stopReason: "token_limit" }),
      readerSample("77aa01ff", { parentAgentId: "ask-mibodu~3fa9c1d2", endedAt: 8, stopReason: "completed" }),
      readerSample("10bb02ee", { endedAt: 8, stopReason: "completed" }),
    ];
    const out: string[] = [];
    tell(
      plainReporter(
        (line) => out.push(line),
        () => {},
        () => 80,
      ),
      ending({ agents }),
    );
    expect(out.slice(out.indexOf("It is so. (a.md:1)") + 2, -2)).toEqual([
      "AGENT                 TURNS  STEPS  TOOL CALLS  TOKENS  COST  TIME  STOP REASON",
      "lead ask-mibodu           1      2           3    1.2k    $0  0 ms  completed",
      "├─ reader ~3fa9c1         1      2           3    1.2k    $0  0 ms  token_limit",
      "│  └─ reader ~77aa01      1      2           3    1.2k    $0  0 ms  completed",
      "└─ reader ~10bb02         1      2           3    1.2k    $0  0 ms  completed",
      "total                     4      8          12    4.8k    $0  0 ms",
    ]);
  });

  test("explain why there is no answer", () => {
    expect(record(plain, ending({ end: stoppedSample() })).out).toContain(
      "Stopped: token_limit, lead, this turn: 50,000 of 50,000 tokens.",
    );
    expect(record(plain, ending({ end: failedSample() })).out).toContain("Failed: no\nroute (model_error)");
  });

  test("a paused job has no answer yet", () => {
    const { out } = record(plain, ending({ end: null, remarks: ["Paused. Resume with: ask --resume"] }));
    expect(out.at(-1)).toBe("Paused. Resume with: ask --resume");
    expect(out.join("\n")).not.toContain("It is so.");
  });
});

describe("JSON lines", () => {
  test("contain every event and nothing else", () => {
    const { out, notes } = record(jsonReporter, ending());
    expect(out.map((line) => (JSON.parse(line) as { type: string }).type)).toEqual(["turn.started", "text.delta"]);
    expect(notes).toEqual(["Pausing"]);
  });

  test("begin with the earlier events", () => {
    const out: string[] = [];
    const reporter = jsonReporter(
      (line) => out.push(line),
      () => {},
    );
    reporter.past([completedSample()]);
    expect(out.map((line) => JSON.parse(line) as unknown)).toEqual([completedSample()]);
  });
});

describe("quiet", () => {
  test("prints only the answer", () => {
    expect(record(quiet, ending())).toEqual({ out: ["It is so. (a.md:1)"], notes: [] });
  });

  test("prints nothing if there is no answer, and the reason on stderr", () => {
    expect(record(quiet, ending({ end: failedSample() }))).toEqual({
      out: [],
      notes: ["Failed: no\nroute (model_error)"],
    });
    expect(record(quiet, ending({ end: null })).out).toEqual([]);
  });
});

test.each([
  [{ json: true }, true, "xterm", "json"],
  [{ quiet: true }, true, "xterm", "quiet"],
  [{}, true, "xterm", "live"],
  [{}, true, "dumb", "plain"],
  [{}, false, "xterm", "plain"],
] as const)("%j on a terminal (%s, %s) is shown as %s", (options, isTerminal, term, mode) => {
  expect(viewModeOf(options, isTerminal, term)).toBe(mode);
});
