import { describe, expect, test } from "vitest";
import { type Account, type ModelUse, noAmounts, noModelUse, openAccount } from "../../../src/budget/index.ts";
import { type BudgetView, budgetLines } from "../../../src/cli/view/budget-lines.ts";
import { widthOf } from "../../../src/cli/view/text-width.ts";

const root = "ask-mibodu";
const child = `${root}~3fa9c1d2`;
const use = (parts: Partial<ModelUse>): ModelUse => ({ ...noModelUse, ...parts });

function account(id: string, agentId: string, turn: number | null, parts: Partial<Account>): Account {
  const turnId = turn === null ? null : `${agentId}#${turn}`;
  return { ...openAccount({ id, agentId, turnId, parentId: parts.parentId ?? null, limits: {} }), ...parts };
}

const accounts: readonly Account[] = [
  account(`turn:${root}#1`, root, 1, {
    limits: { maxSteps: 12, maxTokens: 50_000, maxCostMicros: 500_000, deadlineAt: 9_000_000_000_000 },
    used: { ...noAmounts, steps: 7, tokens: 41_200, costMicros: 12_345, activeMs: 61_000 },
    reserved: { tokens: 4_352, costMicros: 2_000 },
    unconfirmed: { tokens: 900, costMicros: 300 },
    models: {
      "gpt-5": use({ calls: 5, inputTokens: 30_000, outputTokens: 1_400, costMicros: 11_000, unconfirmedCalls: 1 }),
      "gpt-5-mini": use({
        calls: 2,
        inputTokens: 9_000,
        outputTokens: 800,
        cachedInputTokens: 4_000,
        costMicros: 1_345,
      }),
    },
  }),
  account(`agent:${child}`, child, null, {
    parentId: `turn:${root}#1`,
    limits: { maxTokens: 20_000, maxActiveMs: 60_000 },
    used: { ...noAmounts, tokens: 9_800, costMicros: 1_345, activeMs: 2_500 },
    models: {
      "gpt-5-mini": use({
        calls: 2,
        inputTokens: 9_000,
        outputTokens: 800,
        cachedInputTokens: 4_000,
        costMicros: 1_345,
      }),
    },
  }),
  account(`turn:${child}#1`, child, 1, {
    parentId: `agent:${child}`,
    used: { ...noAmounts, tokens: 9_800 },
    models: {
      "gpt-5-mini": use({
        calls: 2,
        inputTokens: 9_000,
        outputTokens: 800,
        cachedInputTokens: 4_000,
        costMicros: 1_345,
      }),
    },
  }),
];
const agents = [
  { agentId: root, parentAgentId: null, definition: { name: "lead" } },
  { agentId: child, parentAgentId: root, definition: { name: "reader" } },
];
const own = new Map([
  [
    root,
    { "gpt-5": use({ calls: 5, inputTokens: 30_000, outputTokens: 1_400, costMicros: 11_000, unconfirmedCalls: 1 }) },
  ],
  [
    child,
    {
      "gpt-5-mini": use({
        calls: 2,
        inputTokens: 9_000,
        outputTokens: 800,
        cachedInputTokens: 4_000,
        costMicros: 1_345,
      }),
    },
  ],
]) as BudgetView["own"];
const shown = (width: number, parts: Partial<BudgetView> = {}): string[] =>
  budgetLines({ accounts, agents, own, now: 5_000, width, ...parts }).map((line) =>
    line.replace(/\d{4}-\d\d-\d\d \d\d:\d\d/, "<a time>"),
  );

describe("limits and spending", () => {
  test("in a wide terminal: a row for each limit, exact, under the paying account; then the spending by model", () => {
    expect(shown(120)).toEqual([
      "ACCOUNT                        LIMIT              USED  RESERVED  UNCONFIRMED                OF",
      "lead ask-mibodu, turn 1        steps                 7         -            -                12",
      "                               tokens           41,200     4,352          900            50,000",
      "                               cost          $0.012345    $0.002      $0.0003             $0.50",
      "                               deadline              -         -            -  <a time>",
      "└─ reader ~3fa9c1, whole life  tokens            9,800         -            -            20,000",
      "                               cost          $0.001345         -            -         unlimited",
      "                               working time      2.5 s         -            -          1 m 00 s",
      "   └─ reader ~3fa9c1, turn 1   tokens            9,800         -            -         unlimited",
      "",
      "AGENT, ITS OWN CALLS  MODEL       CALLS   INPUT        CACHED  OUTPUT  REASONING       COST  NOTE",
      "lead ask-mibodu       gpt-5           5  30,000             0   1,400          0     $0.011  1 unconfirmed",
      "└─ reader ~3fa9c1     gpt-5-mini      2   9,000  4,000 (44 %)     800          0  $0.001345",
      "total                                 7  39,000  4,000 (10 %)   2,200          0  $0.012345  1 unconfirmed",
    ]);
  });

  test("in a narrow one the tables become lists of short amounts", () => {
    expect(shown(76)).toEqual([
      "lead ask-mibodu, turn 1",
      "  steps 7/12",
      "  tokens 41k/50k, 4.4k reserved, 900 unconfirmed",
      "  cost $0.0123/$0.50, $0.0020 reserved, $0.0003 unconfirmed",
      "  deadline <a time>",
      "└─ reader ~3fa9c1, whole life",
      "     tokens 9.8k/20k",
      "     cost $0.0013",
      "     working time 2.5 s/1 m 00 s",
      "   └─ reader ~3fa9c1, turn 1",
      "        tokens 9.8k",
      "",
      "lead ask-mibodu: gpt-5",
      "  5 calls, 30k in, 1.4k out, $0.011",
      "  1 unconfirmed",
      "└─ reader ~3fa9c1: gpt-5-mini",
      "  2 calls, 9k in (44 % cached), 800 out, $0.001345",
      "total",
      "  7 calls, 39k in (10 % cached), 2.2k out, $0.012345",
      "  1 unconfirmed",
    ]);
  });

  test("in a very narrow one lines are broken", () => {
    expect(shown(44).slice(0, 13)).toEqual([
      "lead ask-mibodu, turn 1",
      "  steps 7/12",
      "  tokens 41k/50k, 4.4k reserved, 900",
      "  unconfirmed",
      "  cost $0.0123/$0.50, $0.0020 reserved,",
      "  $0.0003 unconfirmed",
      "  deadline <a time>",
      "└─ reader ~3fa9c1, whole life",
      "     tokens 9.8k/20k",
      "     cost $0.0013",
      "     working time 2.5 s/1 m 00 s",
      "   └─ reader ~3fa9c1, turn 1",
      "        tokens 9.8k",
    ]);
  });

  test.each([200, 100, 80, 72, 60, 40, 24, 10])("nothing is wider than %i columns", (width) => {
    for (const line of budgetLines({ accounts, agents, own, now: 5_000, width }))
      expect(widthOf(line)).toBeLessThanOrEqual(width);
  });

  test("an unknown cost is not shown as zero", () => {
    const models = { local: use({ calls: 1, inputTokens: 5, outputTokens: 5, unpricedCalls: 1 }) };
    const spent = [account(`turn:${root}#1`, root, 1, { used: { ...noAmounts, tokens: 10 }, models })];
    expect(shown(100, { accounts: spent, own: new Map([[root, models]]) }).at(-1)).toMatch(
      /^lead ask-mibodu +local +1 +5 +0 +5 +0 +\?$/,
    );
  });

  test("reports that there are no accounts", () => {
    expect(shown(80, { accounts: [] })).toEqual(["There are no accounts: nothing was spent."]);
  });
});
