import { type Account, totalUse, type UseByModel } from "../../budget/index.ts";
import { accountLabel, amountOf, type BudgetRow, budgetRows, limitNames } from "./budget-rows.ts";
import { agentLabel } from "./agent-row.ts";
import { formatCost } from "./format.ts";
import { type Column, tableLines } from "./table.ts";
import { oneLine, truncate, widthOf, wrap } from "./text-width.ts";
import { placeTree } from "./tree-order.ts";

/** An agent as the tables name it. */
export interface BudgetAgent {
  readonly agentId: string;
  readonly parentAgentId: string | null;
  readonly definition: { readonly name: string };
}

export interface BudgetView {
  readonly accounts: readonly Account[];
  readonly agents: readonly BudgetAgent[];
  /** By agent: what its own calls have used, by model. */
  readonly own: ReadonlyMap<string, UseByModel>;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The terminal's columns; no line is wider. */
  readonly width: number;
}

/**
 * Who may spend what: the tree of accounts with each limit, what is used of it, reserved, unconfirmed; then what each agent
 * spent by model. Where the terminal is too narrow for exact amounts they are shortened, then the tables become lists.
 */
export function budgetLines(view: BudgetView): string[] {
  const { accounts, now } = view;
  if (accounts.length === 0) return ["No account is open: nothing was spent."];
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

/** The first form whose lines all fit; of the last one what does not is cut. */
function fitting(width: number, forms: readonly (() => string[])[]): string[] {
  let lines: string[] = [];
  for (const form of forms) {
    lines = form();
    if (lines.every((line) => widthOf(line) <= width)) return lines;
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

/** Each agent's own calls, model by model, and where there are several rows the sum. */
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
      exact(use.cachedInputTokens),
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
      `  ${short(use.calls)} calls, ${short(use.inputTokens)} in, ${short(use.outputTokens)} out, ${costOf(models)}`,
      ...(note === "" ? [] : [`  ${note}`]),
    ];
  });
}

function exact(count: number): string {
  return amountOf("maxTokens", count, false);
}

function short(count: number): string {
  return amountOf("maxTokens", count, true);
}

/** Unknown as soon as one call had no price. */
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
