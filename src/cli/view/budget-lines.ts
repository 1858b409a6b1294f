import {
  type Account,
  type LimitName,
  limitNameSchema,
  type ModelUse,
  usedAt,
  totalUse,
  type UseByModel,
} from "../../budget/index.ts";
import { dollarsText, numberOfTurn } from "../../state/index.ts";
import { agentLabel } from "./agent-rows.ts";
import { shortAgentId, formatCached, formatCost, formatCount, formatDuration, formatTime } from "./format.ts";
import { placeTree, type Column, tableLines } from "./table.ts";
import { oneLine } from "./terminal-text.ts";
import { truncate, widthOf, wrap } from "./text-width.ts";

/** The fields of an agent record that the tables show. */
interface BudgetAgent {
  readonly agentId: string;
  readonly parentAgentId: string | null;
  readonly definition: { readonly name: string };
}

export interface BudgetView {
  readonly accounts: readonly Account[];
  readonly agents: readonly BudgetAgent[];
  /** Usage of each agent's own calls by model, keyed by agent. */
  readonly own: ReadonlyMap<string, UseByModel>;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Maximum width of a line, in columns. */
  readonly width: number;
}

/**
 * Two tables: the tree of accounts with the used, reserved and unconfirmed amounts of each limit, and the use of each agent
 * by model. In a narrow terminal amounts are rounded, and if that is not enough the tables become lists.
 */
export function budgetLines(view: BudgetView): string[] {
  const { accounts, now } = view;
  if (accounts.length === 0) return ["There are no accounts: nothing was spent."];
  const names = new Map(view.agents.map(({ agentId, definition }) => [agentId, definition.name]));
  const rows = budgetRows(accounts, now);
  const models = modelRows(view);
  return [
    ...fitting(view.width, [
      () => accountTable(rows, names, false),
      () => accountTable(rows, names, true),
      () => accountList(rows, names, view.width),
    ]),
    ...(models.length === 0 ? [] : [""]),
    ...fitting(view.width, [() => modelTable(models), () => modelList(models)]),
  ];
}

/** The first form whose lines all fit; otherwise the last one, truncated. */
function fitting(width: number, forms: readonly (() => string[])[]): string[] {
  let lines: string[] = [];
  for (const form of forms) {
    lines = form();
    if (width === Number.POSITIVE_INFINITY || lines.every((line) => widthOf(line) <= width)) return lines;
  }
  return lines.map((line) => truncate(line, width));
}

const accountColumns: readonly Column[] = [
  { title: "ACCOUNT" },
  { title: "LIMIT" },
  { title: "USED", align: "right" },
  { title: "RESERVED", align: "right" },
  { title: "UNCONFIRMED", align: "right" },
  { title: "OF", align: "right" },
];

function accountTable(rows: readonly BudgetRow[], names: ReadonlyMap<string, string>, isShort: boolean): string[] {
  const cells = rows.map((row, index) => {
    const { account, limit, used, reserved, unconfirmed, max } = row;
    const isFirst = rows[index - 1]?.account !== account;
    const amount = (value: number | null): string => (value ? amountOf(limit, value, isShort) : "-");
    return [
      isFirst ? row.branch + oneLine(accountLabel(account, names)) : row.below,
      limitNames[limit],
      limit === "deadlineAt" ? "-" : amountOf(limit, used, isShort),
      amount(reserved),
      amount(unconfirmed),
      max === null ? "unlimited" : amountOf(limit, max, isShort),
    ];
  });
  return tableLines(accountColumns, cells);
}

function accountList(rows: readonly BudgetRow[], names: ReadonlyMap<string, string>, width: number): string[] {
  return rows.flatMap((row, index) => {
    const { account, branch, below, limit, used, reserved, unconfirmed, max } = row;
    const isFirst = rows[index - 1]?.account !== account;
    const amount = (value: number): string => amountOf(limit, value, true);
    const parts = [
      limit === "deadlineAt" ? amount(max ?? 0) : `${amount(used)}${max === null ? "" : `/${amount(max)}`}`,
      ...(reserved ? [`${amount(reserved)} reserved`] : []),
      ...(unconfirmed ? [`${amount(unconfirmed)} unconfirmed`] : []),
    ];
    return [
      ...(isFirst ? [`${branch}${oneLine(accountLabel(account, names))}`] : []),
      ...wrap(`${limitNames[limit]} ${parts.join(", ")}`, width - widthOf(below) - 2).map(
        (line) => `${below}  ${line}`,
      ),
    ];
  });
}

interface ModelRow {
  readonly who: string;
  readonly model: string;
  readonly models: UseByModel;
}

/** The calls of each agent by model, with a sum if there are several rows. */
function modelRows({ agents, own: spent }: BudgetView): ModelRow[] {
  const rows = placeTree(agents).flatMap(({ member, branch }) => {
    const own = Object.entries(spent.get(member.agentId) ?? {});
    return own.map(([model, use]) => ({ who: branch + nameOf(member), model, models: { [model]: use } }));
  });
  if (rows.length < 2) return rows;
  const total: UseByModel = Object.fromEntries(rows.map(({ models }, index) => [String(index), totalUse(models)]));
  return [...rows, { who: "total", model: "", models: total }];
}

function nameOf({ agentId, definition }: BudgetAgent): string {
  return agentLabel({ agentId, name: oneLine(definition.name) });
}

const modelColumns: readonly Column[] = [
  { title: "AGENT, ITS OWN CALLS" },
  { title: "MODEL" },
  { title: "CALLS", align: "right" },
  { title: "INPUT", align: "right" },
  { title: "CACHED", align: "right" },
  { title: "OUTPUT", align: "right" },
  { title: "REASONING", align: "right" },
  { title: "COST", align: "right" },
  { title: "NOTE" },
];

function modelTable(rows: readonly ModelRow[]): string[] {
  if (rows.length === 0) return [];
  const cells = rows.map(({ who, model, models }) => {
    const use = totalUse(models);
    return [
      who,
      oneLine(model),
      exact(use.calls),
      exact(use.inputTokens),
      cachedText(use),
      exact(use.outputTokens),
      exact(use.reasoningTokens),
      costOf(models),
      noteOf(models),
    ];
  });
  return tableLines(modelColumns, cells);
}

function modelList(rows: readonly ModelRow[]): string[] {
  return rows.flatMap(({ who, model, models }) => {
    const use = totalUse(models);
    const note = noteOf(models);
    return [
      model === "" ? who : `${who}: ${oneLine(model)}`,
      `  ${short(use.calls)} calls, ${inputText(use)}, ${short(use.outputTokens)} out, ${costOf(models)}`,
      ...(note === "" ? [] : [`  ${note}`]),
    ];
  });
}

/** The cached tokens, and their share of the input if there are any. */
function cachedText(use: ModelUse): string {
  const cached = formatCached(use);
  const count = exact(use.cachedInputTokens);
  return cached === undefined ? count : `${count} (${cached.replace(" cached", "")})`;
}

function inputText(use: ModelUse): string {
  const cached = formatCached(use);
  return `${short(use.inputTokens)} in${cached === undefined ? "" : ` (${cached})`}`;
}

function exact(count: number): string {
  return amountOf("maxTokens", count, false);
}

function short(count: number): string {
  return amountOf("maxTokens", count, true);
}

/** Unknown if any call had no price. */
function costOf(models: UseByModel): string {
  const { costMicros, unpricedCalls } = totalUse(models);
  if (unpricedCalls > 0) return formatCost(null);
  return amountOf("maxCostMicros", costMicros, false);
}

function noteOf(models: UseByModel): string {
  const { estimatedCalls, unconfirmedCalls } = totalUse(models);
  return [
    ...(estimatedCalls > 0 ? [`${estimatedCalls} estimated`] : []),
    ...(unconfirmedCalls > 0 ? [`${unconfirmedCalls} unconfirmed`] : []),
  ].join(", ");
}

/** A row for a limit of an account, or for an amount without a limit. */
interface BudgetRow {
  /** Branches of the tree before the name. */
  readonly branch: string;
  /** Branches before the account's further rows. */
  readonly below: string;
  readonly account: Account;
  readonly limit: LimitName;
  readonly used: number;
  /** `null` if this kind of limit has no reservations. */
  readonly reserved: number | null;
  readonly unconfirmed: number | null;
  /** The limit's value, or `null` if it is unlimited. */
  readonly max: number | null;
}

const limitNames: Readonly<Record<LimitName, string>> = {
  maxSteps: "steps",
  maxTreeSteps: "tree steps",
  maxToolCalls: "tool calls",
  maxTreeToolCalls: "tree tool calls",
  maxTokens: "tokens",
  maxCostMicros: "cost",
  maxActiveMs: "working time",
  deadlineAt: "deadline",
};

/** The rows of a tree of accounts. An account without limits also has rows for tokens and cost. */
export function budgetRows(accounts: readonly Account[], now: number): BudgetRow[] {
  const members = accounts.map((account) => ({ agentId: account.id, parentAgentId: account.parentId, account }));
  return placeTree(members).flatMap(({ member: { account }, branch }) => {
    const below = branch.replaceAll("├─ ", "│  ").replaceAll("└─ ", "   ");
    return limitNameSchema.options.flatMap((limit) => {
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
function accountLabel(account: Account, names: ReadonlyMap<string, string>): string {
  const { id, agentId, turnId } = account;
  const who = `${names.get(agentId) ?? ""} ${shortAgentId(agentId)}`.trim();
  if (id.startsWith("background:")) return `${who}, background of turn ${numberOfTurn(id)}`;
  return `${who}, ${turnId === null ? "whole life" : `turn ${numberOfTurn(turnId)}`}`;
}

/** An amount in the unit of its limit: exact, or rounded for narrow terminals. */
function amountOf(limit: LimitName, amount: number, isShort: boolean): string {
  if (limit === "maxCostMicros") return isShort || amount === 0 ? formatCost(amount) : dollarsText(amount);
  if (limit === "maxActiveMs") return formatDuration(amount);
  if (limit === "deadlineAt") return formatTime(amount);
  return isShort ? formatCount(amount) : amount.toLocaleString("en-US");
}
