import { describe, expect, test } from "vitest";
import { type Frame, frameLines } from "../../../src/cli/view/live-reporter.ts";
import { paintFor } from "../../../src/cli/view/terminal-text.ts";
import { widthOf } from "../../../src/cli/view/text-width.ts";
import { accountSample, agentSample, readerSample, used } from "../support/samples.ts";

const plain = paintFor({ NO_COLOR: "1" });

function frame(changes: Partial<Frame> = {}): Frame {
  return {
    agents: [agentSample({ text: "It is\nso." }), readerSample("3fa9c1d2"), readerSample("77aa01ff")],
    rootAgentId: "ask-mibodu",
    header: ["Question: 何ですか"],
    notice: undefined,
    accounts: [],
    now: 2_000,
    columns: 100,
    rows: 24,
    ...changes,
  };
}

describe("the live view", () => {
  test("shows question, tree and the answer so far", () => {
    expect(frameLines(frame(), plain)).toEqual([
      "Question: 何ですか",
      "AGENT              STATE       STEP  TOKENS  COST  TIME  NOW",
      "lead ask-mibodu    ● thinking     2    1.2k    $0   0 s  What is it?",
      "├─ reader ~3fa9c1  ● thinking     2    1.2k    $0   0 s  What is it?",
      "└─ reader ~77aa01  ● thinking     2    1.2k    $0   0 s  What is it?",
      "",
      "It is",
      "so.",
    ]);
  });

  test.each([
    { columns: 40, rows: 24 },
    { columns: 80, rows: 8 },
    { columns: 60, rows: 12 },
  ])("fits a terminal of $columns x $rows, however much there is to show", ({ columns, rows }) => {
    const agents = [
      agentSample({ text: "語".repeat(2_000) }),
      ...Array.from({ length: 40 }, (_, index) => readerSample(`${index}a3fa9c1d2`)),
    ];
    const lines = frameLines(frame({ agents, columns, rows, notice: "Pausing at the next safe point." }), plain);
    expect(lines.length).toBeLessThan(rows);
    for (const line of lines) expect(widthOf(line)).toBeLessThan(columns);
    expect(lines.join("\n")).toMatch(/… and \d+ more agents/);
    expect(lines.at(-1)).toMatch(/^Pausing/);
  });

  test("at 80 columns shows the current activity of each agent, with any limits and reservations", () => {
    const turn = accountSample({
      limits: { maxSteps: 12, maxTokens: 600_000, maxActiveMs: 60_000, maxCostMicros: 500_000 },
      used: used({ steps: 2, tokens: 24_000, activeMs: 1_500, costMicros: 20_000 }),
      reserved: { tokens: 4_352, costMicros: 3_000 },
    });
    const lines = frameLines(frame({ accounts: [turn], columns: 80 }), plain);
    expect(lines[1]).toMatch(/^AGENT.*TOKENS.*COST.*NOW$/);
    expect(lines[2]).toMatch(/24k\/600k.*\$0\.0200\/\$0\.50.*What is it\?$/);
  });

  test("an answer is wrapped at spaces, and its lists stay indented", () => {
    const text = `Two:\n  - ${"frost bursts ".repeat(6)}`;
    const lines = frameLines(frame({ agents: [agentSample({ text })], columns: 41 }), plain);
    expect(lines.slice(-4)).toEqual([
      "Two:",
      "  - frost bursts frost bursts frost",
      "  bursts frost bursts frost bursts frost",
      "  bursts",
    ]);
  });

  test("the end of a long answer stays visible", () => {
    const text = Array.from({ length: 100 }, (_, index) => `line ${index}`).join("\n");
    const lines = frameLines(frame({ agents: [agentSample({ text })], rows: 10 }), plain);
    expect(lines.at(-1)).toBe("line 99");
  });

  test("escape sequences of a model do not reach the terminal", () => {
    const agents = [agentSample({ text: "\u001B[2Jgone", prompt: "\u001B]0;title\u0007x" })];
    expect(frameLines(frame({ agents }), plain).join("")).not.toContain("\u001B");
  });

  test("colours are used unless NO_COLOR is set", () => {
    const agents = [agentSample({ endedAt: 5, stopReason: "error" })];
    expect(frameLines(frame({ agents }), paintFor({})).join("\n")).toContain("\u001B[31m");
    expect(frameLines(frame({ agents }), paintFor({ NO_COLOR: "" })).join("\n")).toContain("\u001B[31m");
    expect(frameLines(frame({ agents }), plain).join("\n")).not.toContain("\u001B");
  });
});
