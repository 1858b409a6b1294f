import { describe, expect, test } from "vitest";
import { agentCells, stateOf, workingTimeOf } from "../../../src/cli/view/agent-rows.ts";
import { accountSample, agentSample, readerSample, used } from "../support/samples.ts";

function account(id: string, turnId: string | null, maxTokens: number, tokens: number) {
  return accountSample({ id, turnId, limits: { maxTokens }, used: used({ tokens }) });
}

describe("an agent's row in the live tree", () => {
  test("shows usage and limit", () => {
    const turn = accountSample({
      limits: { maxSteps: 12, maxTokens: 600_000, maxActiveMs: 60_000, maxCostMicros: 500_000 },
      used: used({ steps: 2, tokens: 24_000, activeMs: 1_500, costMicros: 20_000 }),
      activeCount: 1,
      activeSince: 10_000,
    });
    const cells = agentCells(agentSample(), "", { accounts: [turn], now: 13_000 });
    expect(cells).toEqual([
      "lead ask-mibodu",
      "● thinking",
      "2/12",
      "24k/600k",
      "$0.0200/$0.50",
      "4 s/1 m 00 s",
      "What is it?",
    ]);
  });

  test("shows the reservations of calls in flight behind the usage", () => {
    const turn = accountSample({
      limits: { maxTokens: 600_000, maxCostMicros: 500_000 },
      used: used({ tokens: 24_000, costMicros: 20_000 }),
      reserved: { tokens: 4_352, costMicros: 3_000 },
    });
    const cells = agentCells(agentSample(), "", { accounts: [turn], now: 0 });
    expect(cells.slice(3, 5)).toEqual(["24k+4.4k/600k", "$0.0200+$0.0030/$0.50"]);
  });

  test("shows the plain usage without limits, and the running tools", () => {
    const agent = readerSample("3fa9c1d2e4", {
      activity: "tools",
      costMicros: null,
      runningTools: { a: "read_file", b: "read_file", c: "search_files" },
      prompt: "File: a.md\nQuestion: x",
    });
    const turn = accountSample({ agentId: agent.agentId, used: used({ activeMs: 2_000 }) });
    expect(agentCells(agent, "└─ ", { accounts: [turn], now: 5_000 })).toEqual([
      "└─ reader ~3fa9c1",
      "● tools",
      "2",
      "1.2k",
      "?",
      "2 s",
      "read_file ×2, search_files · File: a.md Question: x",
    ]);
  });

  test("shows what it waits for, and how many more", () => {
    const context = { accounts: [], now: 5_000 };
    const pay = { kind: "approval", name: "pay", prompt: 'pay({"to":\n"Ann"})' } as const;
    const agent = agentSample({ activity: "waiting", openRequests: { a: pay } });
    const [, state, , , , , now] = agentCells(agent, "", context);
    expect([state, now]).toEqual(["? waits for you", 'waits: approve pay({"to": "Ann"})']);
    const more = agentCells({ ...agent, openRequests: { a: pay, b: pay } }, "", context);
    expect(more[6]).toBe('waits: approve pay({"to": "Ann"}) (and 1 more)');
    expect(agentCells({ ...agent, endedAt: 4, stopReason: "completed" }, "", context)[1]).toBe("✓ done");
  });

  test("the tightest of several accounts counts; those of others and of earlier turns do not", () => {
    const agent = agentSample({ turnId: "ask-mibodu#2" });
    const accounts = [
      account("agent:ask-mibodu", null, 10_000, 9_000),
      account("turn:ask-mibodu#2", "ask-mibodu#2", 5_000, 1_000),
      account("turn:ask-mibodu#1", "ask-mibodu#1", 100, 100),
      { ...account("agent:other", null, 10, 10), agentId: "other" },
    ];
    expect(agentCells(agent, "", { accounts, now: 0 })[3]).toBe("9k/10k");
  });

  test("the working time is that of all its turns", () => {
    const accounts = [
      accountSample({ turnId: "ask-mibodu#1", used: used({ activeMs: 1_000 }) }),
      accountSample({ turnId: "ask-mibodu#2", activeCount: 1, activeSince: 5_000 }),
      accountSample({ id: "agent:ask-mibodu", turnId: null, used: used({ activeMs: 9_000 }) }),
    ];
    expect(workingTimeOf(accounts, "ask-mibodu", 5_500)).toBe(1_500);
  });

  test.each([
    [{ endedAt: 5, stopReason: "completed" }, "✓ done"],
    [{ endedAt: 5, stopReason: "error" }, "✗ failed"],
    [{ endedAt: 5, stopReason: "token_limit" }, "■ token_limit"],
    [{ status: "paused" as const }, "‖ paused"],
    [{ status: "ready" as const, turnId: null }, "· ready"],
    [{ activity: "retrying" as const }, "● retrying"],
  ])("%j is %s", (changes, text) => {
    expect(stateOf(agentSample(changes)).text).toBe(text);
  });
});
