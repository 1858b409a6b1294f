import { describe, expect, test } from "vitest";
import {
  askingLines,
  decidingLines,
  requestTable,
  stateText,
  waitingLines,
  waitText,
} from "../../../src/cli/view/request-lines.ts";
import { requestSample } from "../support/samples.ts";

const invocation = { main: "/p/node_modules/troupe/dist/cli/main.js", directory: "/p", script: undefined };

describe("requests", () => {
  test("an approval whose text equals its arguments prints them once", () => {
    expect(askingLines(requestSample())).toEqual([
      "lead ask-mibodu asks for approval of pay (ask-mibodu#1:1:0:1):",
      '  pay({"to":"Ann"})',
    ]);
  });

  test.each(["Pay Ann", 'pay({"to":"A…'])("a text that differs from the arguments does not hide them: %s", (prompt) => {
    expect(askingLines(requestSample({ prompt }))).toEqual([
      "lead ask-mibodu asks for approval of pay (ask-mibodu#1:1:0:1):",
      `  ${prompt}`,
      '  arguments: {"to":"Ann"}',
    ]);
  });

  test("a question keeps its lines, and a request that expires shows when", () => {
    const prompt = "Which day?\n- Monday";
    const lines = askingLines(requestSample({ kind: "question", name: "ask_user", prompt, expiresAt: 0 }));
    expect(lines).toEqual([
      "lead ask-mibodu asks (ask-mibodu#1:1:0:1, until 1970-01-01T00:00:00.000Z):",
      "  Which day?",
      "  - Monday",
    ]);
  });

  test("text of a model cannot move the cursor", () => {
    const request = requestSample({ prompt: "\u001B[2JPay\u0007", arguments: { to: "\u202EnnA" } });
    const text = askingLines(request).join("\n");
    for (const sign of ["\u001B", "\u0007", "\u202E"]) expect(text).not.toContain(sign);
    expect(waitText(request)).toBe("waits: approve Pay");
  });
});

test.each([
  ["approval", ["npx troupe approve a#1:1:0:1 --store x.db", "npx troupe reject a#1:1:0:1 --reason why --store x.db"]],
  [
    "question",
    ["npx troupe answer a#1:1:0:1 'your answer' --store x.db", "npx troupe reject a#1:1:0:1 --reason why --store x.db"],
  ],
  [
    "client",
    ["npx troupe answer a#1:1:0:1 'its result' --store x.db", "npx troupe reject a#1:1:0:1 --reason why --store x.db"],
  ],
  ["auth", ["(its program continues with agent.resume({ auth }))", "npx troupe reject a#1:1:0:1 --store x.db"]],
] as const)("a request of kind %s is decided with", (kind, lines) => {
  expect(decidingLines({ requestId: "a#1:1:0:1", kind }, invocation, ["--store", "x.db"])).toEqual(lines);
});

test("a request for credentials that a tool's code asked is answered here", () => {
  const request = { requestId: "a#1:1:0:1", kind: "auth", isAsked: true } as const;
  expect(decidingLines(request, invocation, ["--store", "x.db"])).toEqual([
    "npx troupe approve a#1:1:0:1 --store x.db",
    "npx troupe reject a#1:1:0:1 --reason why --store x.db",
  ]);
});

test("a waiting job prints all its requests, and how to decide them", () => {
  const requests = [requestSample(), requestSample({ requestId: "ask-mibodu#1:1:1:1", kind: "question" })];
  const text = waitingLines(requests, invocation, []).join("\n");
  expect(text).toContain("    npx troupe approve ask-mibodu#1:1:0:1\n");
  expect(text).toContain("    npx troupe answer ask-mibodu#1:1:1:1 'your answer'\n");
});

describe("the table of requests", () => {
  test("has age, agent, tool, text and expiry", () => {
    const placed = [
      { request: requestSample(), path: "lead ask-mibodu" },
      { request: requestSample({ expiresAt: 121_000, kind: "question" }), path: "lead ask-mibodu › reader ~3fa9c1" },
      { request: requestSample({ expiresAt: 5_000 }), path: "x" },
    ];
    expect(requestTable(placed, { now: 61_000, width: 200 })).toEqual([
      "REQUEST                  AGE  KIND      AGENT                             TOOL  ASKS               EXPIRES",
      'ask-mibodu#1:1:0:1  1 m 00 s  approval  lead ask-mibodu                   pay   pay({"to":"Ann"})  never',
      'ask-mibodu#1:1:0:1  1 m 00 s  question  lead ask-mibodu › reader ~3fa9c1  pay   pay({"to":"Ann"})  in 1 m 00 s',
      'ask-mibodu#1:1:0:1  1 m 00 s  approval  x                                 pay   pay({"to":"Ann"})  now',
    ]);
  });

  test("in a narrow terminal keeps the id, the agent and the text", () => {
    const placed = [{ request: requestSample({ kind: "question" }), path: "lead ask-mibodu › reader ~3fa9c1" }];
    expect(requestTable(placed, { now: 61_000, width: 80 })).toEqual([
      "REQUEST             AGENT                             ASKS               EXPIRES",
      'ask-mibodu#1:1:0:1  lead ask-mibodu › reader ~3fa9c1  pay({"to":"Ann"})  never',
    ]);
  });

  test.each([
    [{ status: "open", decision: null }, "open"],
    [{ status: "closed", decision: null }, "closed, its turn continued without it"],
    [{ status: "decided", decision: { verdict: "expired", by: null, reason: null } }, "expired"],
    [
      { status: "decided", decision: { verdict: "rejected", by: "anna", reason: "too\nmuch" } },
      "rejected by anna: too much",
    ],
    [
      { status: "decided", decision: { verdict: "edited", by: "anna", reason: null } },
      "approved with other arguments by anna",
    ],
  ] as const)("%j reads", (state, text) => {
    expect(stateText(state)).toBe(text);
    const [title = "", row = ""] = requestTable([{ request: requestSample(state), path: "x" }], {
      now: 1_000,
      width: 200,
      withState: true,
    });
    expect(title.endsWith("  STATE")).toBe(true);
    expect(row.endsWith(`  ${text}`)).toBe(true);
  });
});
