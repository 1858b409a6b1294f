import { describe, expect, test } from "vitest";
import {
  type Account,
  type ModelUse,
  noModelUse,
  openAccount,
  spendingByAgent,
  totalUse,
} from "../../src/budget/index.ts";

const use = (tokens: number, calls = 1): ModelUse => ({ ...noModelUse, calls, inputTokens: tokens });

function account(id: string, agentId: string, parentId: string | null, models: Account["models"]): Account {
  return { ...openAccount({ id, agentId, turnId: null, parentId, limits: {} }), models };
}

describe("spending by agent", () => {
  const accounts = [
    account("agent:a", "a", null, { big: use(100, 4), small: use(30, 3) }),
    account("turn:a#1", "a", "agent:a", { big: use(60, 2), small: use(30, 3) }),
    account("turn:a#2", "a", "agent:a", { big: use(40, 2) }),
    account("agent:a~b", "a~b", "turn:a#1", { small: use(30, 3) }),
    account("turn:a~b#1", "a~b", "agent:a~b", { small: use(30, 3) }),
    account("agent:a~c", "a~c", "turn:a~b#1", { small: use(10, 1) }),
  ];

  test("has the agent's own use and that of its tree; a turn under a lifetime account counts once", () => {
    const spending = spendingByAgent(accounts);
    expect(spending.get("a")).toEqual({
      tree: { big: use(100, 4), small: use(30, 3) },
      own: { big: use(100, 4) },
    });
    expect(spending.get("a~b")).toEqual({ tree: { small: use(30, 3) }, own: { small: use(20, 2) } });
    expect(spending.get("a~c")?.own).toEqual({ small: use(10, 1) });
  });

  test("of an agent without a lifetime account is the sum over its turns", () => {
    const turns = [
      account("turn:a#1", "a", null, { big: use(60, 2) }),
      account("turn:a#2", "a", null, { big: use(40, 2), small: use(1) }),
    ];
    expect(totalUse(spendingByAgent(turns).get("a")?.tree ?? {})).toEqual(use(101, 5));
  });

  test("stays with the agent if its child continues in the background", () => {
    const moved = [
      account("turn:a#1", "a", null, { small: use(70, 7) }),
      account("background:a#1", "a", null, { small: use(10, 1) }),
      account("agent:a~b", "a~b", "background:a#1", { small: use(40, 4) }),
    ];
    const spending = spendingByAgent(moved);
    expect(spending.get("a")).toEqual({ tree: { small: use(80, 8) }, own: { small: use(40, 4) } });
  });
});
