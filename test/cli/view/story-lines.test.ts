import { describe, expect, test } from "vitest";
import { historyLines, traceLines } from "../../../src/cli/commands/show.ts";
import type { Message, TraceEntry } from "../../../src/state/index.ts";

const long = Array.from({ length: 14 }, (_, index) => `line ${index} ${"x".repeat(index === 0 ? 300 : 1)}`).join("\n");
const messages: readonly Message[] = [
  { role: "user", id: "1", createdAt: 0, origin: "user", content: "What is it?" },
  {
    role: "assistant",
    id: "2",
    createdAt: 0,
    origin: "model",
    content: "",
    toolCalls: [{ callId: "c", providerId: "p", name: "read_file", arguments: '{"path":\n"a.md"}' }],
  },
  { role: "tool", id: "3", createdAt: 0, origin: "tool", content: long, callId: "c", providerId: "p", isError: true },
  { role: "user", id: "4", createdAt: 0, origin: "hook:notes", content: "Mind the gap.\u001B[2J" },
];

describe("a history", () => {
  test("is cut if it is long", () => {
    const lines = historyLines(messages, false);
    expect(lines.slice(0, 5)).toEqual([
      "[user]",
      "  What is it?",
      "[assistant]",
      '  → read_file {"path": "a.md"}',
      "[tool, failed]",
    ]);
    expect(lines[5]).toMatch(/^ {2}line 0 x+…$/);
    expect(lines).toContain("  … 2 more lines; --full shows all");
    expect(lines.slice(-2)).toEqual(["[user, hook:notes]", "  Mind the gap."]);
  });

  test("names the sources of an answer", () => {
    const sources = Array.from({ length: 6 }, (_, index) => ({
      type: "url" as const,
      url: `https://a.example/${index}`,
    }));
    const [first, ...others] = sources;
    const answer: Message = {
      role: "assistant",
      id: "5",
      createdAt: 0,
      origin: "model",
      content: "So.",
      sources: [
        { type: "url", url: first?.url, title: "The\u001B[2J Alps" },
        ...others,
        { type: "document", id: "d1" },
      ],
    };
    expect(historyLines([answer], false)).toEqual([
      "[assistant]",
      "  So.",
      "  source: The Alps, https://a.example/0",
      ...[1, 2, 3, 4].map((index) => `  source: https://a.example/${index}`),
      "  … 2 more sources; --full shows all",
    ]);
    expect(historyLines([answer], true).at(-1)).toBe("  source: d1");
  });

  test("names the images and files of a user", () => {
    const content = [
      { type: "text", text: "Look:" },
      { type: "image", url: "data:image/png;base64,AAAA" },
      {
        type: "file",
        mediaType: "application/pdf",
        url: "data:application/pdf;base64,AAAA",
        name: "a\u202Efdp]\n\u001B[2J.exe",
      },
      { type: "file", mediaType: "text/csv", artifactId: "artifact_1" },
    ] as const;
    const asked: Message = { role: "user", id: "6", createdAt: 0, origin: "user", content };
    expect(historyLines([asked], false)).toEqual([
      "[user]",
      "  Look:",
      "  [image]",
      "  [file a fdp 2J.exe, application/pdf, 3 bytes]",
      "  [file text/csv: artifact artifact_1]",
    ]);
  });

  test("is complete if requested", () => {
    const lines = historyLines(messages, true);
    expect(lines.join("\n")).toContain("x".repeat(300));
    expect(lines).toContain("  line 13 x");
  });
});

test("the times of a trace count from the start of the turn", () => {
  const common = { turnId: "a#1", at: 1_000 };
  const trace: readonly TraceEntry[] = [
    { type: "user_input", ...common, step: 0, turn: 1, prompt: "What is it?" },
    {
      type: "llm_call",
      ...common,
      step: 1,
      at: 1_010,
      model: "offline",
      durationMs: 9,
      toolCallsCount: 1,
      usage: { inputTokens: 653, outputTokens: 26, costMicros: null },
    },
    {
      type: "tool_execution",
      ...common,
      step: 1,
      at: 1_020,
      callId: "c",
      name: "read_file",
      arguments: { path: "a.md" },
      status: "error",
      error: "no\nsuch file",
      durationMs: 3,
    },
  ];
  expect(traceLines(trace, false)).toEqual([
    "    0 ms  turn 1: What is it?",
    "   10 ms  step 1: offline, 653 + 26 tokens, ?, 9 ms, 1 tool call",
    '   20 ms  step 1: read_file {"path":"a.md"}, 3 ms → error: no such file',
  ]);
});
