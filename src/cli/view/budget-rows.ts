import { type Account, type LimitName, usedAt } from "../../budget/index.ts";
import { dollarsText, numberOfTurn } from "../../state/index.ts";
import { shortAgentId } from "../job/job-id.ts";
import { formatCost, formatCount, formatDuration, formatTime } from "./format.ts";
import { placeTree } from "./tree-order.ts";

/** One limit of one account, or an amount that has none. */
export interface BudgetRow {
  /** Branches of the tree in front of the name. */
  readonly branch: string;
  /** The same for the account's further rows. */
  readonly below: string;
  readonly account: Account;
  readonly limit: LimitName;
  readonly used: number;
  /** Null where nothing is reserved by this kind of limit. */
  readonly reserved: number | null;
  readonly unconfirmed: number | null;
  /** Null: unlimited. */
  readonly max: number | null;
}

/** In the order in which they are shown. */
const limits = [
  "maxSteps",
  "maxTreeSteps",
  "maxToolCalls",
  "maxTreeToolCalls",
  "maxTokens",
  "maxCostMicros",
  "maxActiveMs",
  "deadlineAt",
] as const satisfies readonly LimitName[];

export const limitNames: Readonly<Record<LimitName, string>> = {
  maxSteps: "steps",
  maxTreeSteps: "tree steps",
  maxToolCalls: "tool calls",
  maxTreeToolCalls: "tree tool calls",
  maxTokens: "tokens",
  maxCostMicros: "cost",
  maxActiveMs: "working time",
  deadlineAt: "deadline",
};

/** The rows of a tree of accounts, each account under the one that pays with it; tokens and known cost always have one. */
export function budgetRows(accounts: readonly Account[], now: number): BudgetRow[] {
  const members = accounts.map((account) => ({ agentId: account.id, parentAgentId: account.parentId, account }));
  return placeTree(members).flatMap(({ member: { account }, branch }) => {
    const below = branch.replaceAll("├─ ", "│  ").replaceAll("└─ ", "   ");
    return limits.flatMap((limit) => {
      const row = { branch, below, account, limit, ...amountsOf(account, limit, now) };
      const isUsed = row.used + (row.reserved ?? 0) > 0;
      const isShown = row.max !== null || limit === "maxTokens" || (limit === "maxCostMicros" && isUsed);
      return isShown ? [row] : [];
    });
  });
}

type AmountsOfLimit = Pick<BudgetRow, "used" | "reserved" | "unconfirmed" | "max">;

function amountsOf(account: Account, limit: LimitName, now: number): AmountsOfLimit {
  const { reserved, unconfirmed } = account;
  const max = account.limits[limit] ?? null;
  const used = usedAt(account, now);
  const plain = { reserved: null, unconfirmed: null, max };
  switch (limit) {
    case "maxTokens":
      return { used: used.tokens, reserved: reserved.tokens, unconfirmed: unconfirmed.tokens, max };
    case "maxCostMicros":
      return { used: used.costMicros, reserved: reserved.costMicros, unconfirmed: unconfirmed.costMicros, max };
    case "maxSteps":
      return { used: used.steps, ...plain };
    case "maxTreeSteps":
      return { used: used.treeSteps, ...plain };
    case "maxToolCalls":
      return { used: used.toolCalls, ...plain };
    case "maxTreeToolCalls":
      return { used: used.treeToolCalls, ...plain };
    case "maxActiveMs":
      return { used: used.activeMs, ...plain };
    case "deadlineAt":
      return { used: now, ...plain };
    default:
      return limit satisfies never;
  }
}

/** `lead ask-mibodu, turn 1`, `reader ~3fa9c1, whole life`, `lead ask-mibodu, background of turn 1`. */
export function accountLabel(account: Account, names: ReadonlyMap<string, string>): string {
  const { id, agentId, turnId } = account;
  const who = `${names.get(agentId) ?? ""} ${shortAgentId(agentId)}`.trim();
  if (id.startsWith("background:")) return `${who}, background of turn ${numberOfTurn(id)}`;
  return `${who}, ${turnId === null ? "whole life" : `turn ${numberOfTurn(turnId)}`}`;
}

/** An amount in the unit of its limit: exact, or short for narrow terminals. */
export function amountOf(limit: LimitName, amount: number, isShort: boolean): string {
  if (limit === "maxCostMicros") return isShort || amount === 0 ? formatCost(amount) : dollarsText(amount);
  if (limit === "maxActiveMs") return formatDuration(amount);
  if (limit === "deadlineAt") return formatTime(amount);
  return isShort ? formatCount(amount) : amount.toLocaleString("en-US");
}
