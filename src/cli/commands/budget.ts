import {
  type Account,
  forecastsOf,
  type LimitName,
  limitNames,
  type LimitsChange,
  limitsChangeOf,
  outerPartsOf,
  shownAccount,
} from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { accountText, amountText, DEFAULT_TENANT, limitsChangeText, shownLimit, usedText } from "../../state/index.ts";
import { addToOuter, assertBudgetSet } from "../../stores/index.ts";
import { type BudgetChangeOptions, budgetChangeOf, hasBudgetChange } from "../budget-options.ts";
import { type CliContext, commandLine, userName } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { findAgent, ownerOf } from "../job/find-agent.ts";
import { type StoreLocation, type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { pageSize } from "../options.ts";
import { renewalText } from "../view/format.ts";
import { type Column, columnsOf, tableLines } from "../view/table.ts";
import { oneLine } from "../view/terminal-text.ts";
import { wakeWorkers } from "./abort.ts";

export type SetBudgetOptions = StoreOptions & BudgetChangeOptions & AccountListing;

/** Without an agent or account the command lists the accounts above the agents. */
interface AccountListing {
  readonly owner?: string | undefined;
  readonly limit?: number | undefined;
  readonly after?: string | undefined;
  readonly json?: boolean | undefined;
}

/**
 * Changes limits of an agent's lifetime through the store. The process that runs the agent journals the change, now or
 * later. Without an agent or account, lists the accounts above the agents.
 */
export async function budgetCommand(
  context: CliContext,
  text: string | undefined,
  options: SetBudgetOptions,
): Promise<ExitCode> {
  const { owner, limit, after, json } = options;
  if (text === undefined) return await listAccounts(context, options);
  if ([owner, limit, after, json].some((option) => option !== undefined)) {
    throw new InvalidInputError(
      "--owner, --limit, --after and --json list the accounts above the agents; leave out the agent or account, or these options",
    );
  }
  const now = Date.now();
  const change = limitsChangeOf(budgetChangeOf(options), now);
  const place = storeLocation(context, options);
  if (outerPartsOf(text)) return await addCommand(context, text, change, place);
  return await withStore(place, "openExisting", async (stores) => {
    const { agentId } = await findAgent(stores, text);
    const key = { tenant: DEFAULT_TENANT, agentId };
    const outcome = await stores.setBudget(key, { change, by: userName() }, now);
    assertBudgetSet(agentId, outcome);
    const { id: accountId, limits } = outcome.account;
    if (outcome.type === "unchanged") {
      context.out(`${agentId} already has these limits.`);
      return exitCodes.success;
    }
    context.out(`Changed: ${limitsChangeText({ accountId, limits, before: outcome.before })}`);
    if ((await ownerOf(stores, key)) === undefined) await wakeWorkers(place, outcome.posted);
    return exitCodes.success;
  });
}

/** The limits that accounts above the roots have, by the limit of the same flag. */
const outerLimits: Readonly<Partial<Record<LimitName, LimitName>>> = {
  maxSteps: "maxTreeSteps",
  maxTreeSteps: "maxTreeSteps",
  maxToolCalls: "maxTreeToolCalls",
  maxTreeToolCalls: "maxTreeToolCalls",
  maxTokens: "maxTokens",
  maxCostMicros: "maxCostMicros",
};

/** Adds to the limits of an account above the roots until it renews: its limits themselves are options of the runtime. */
async function addCommand(
  context: CliContext,
  accountId: string,
  { set, removed }: LimitsChange,
  place: StoreLocation,
): Promise<ExitCode> {
  const amounts = limitNames.flatMap((name) =>
    set[name] === undefined ? [] : [[outerLimits[name], set[name]] as const],
  );
  if (removed.length > 0 || amounts.some(([name]) => name === undefined)) {
    throw new InvalidInputError(
      `to an account above the roots, --max-cost, --max-tokens, --max-steps and --max-tool-calls add an amount; its limits are set by createRuntime({ accounts })`,
    );
  }
  return await withStore(place, "openExisting", async (stores) => {
    const now = Date.now();
    const more = Object.fromEntries(amounts);
    const added = await addToOuter(stores.outer, { tenant: DEFAULT_TENANT, accountId, more }, { now, steady: 0 });
    const { limits } = added.account;
    context.out(`Until it renews: ${limitsChangeText({ accountId, limits, before: added.before.limits })}`);
    return exitCodes.success;
  });
}

async function listAccounts(context: CliContext, options: SetBudgetOptions): Promise<ExitCode> {
  const { owner, limit = pageSize.usual, after, json } = options;
  if (hasBudgetChange(options)) {
    throw new InvalidInputError(
      "name the agent or account whose limits change, for instance `budget desk-7 --max-cost 5`",
    );
  }
  if (owner !== undefined && after !== undefined) {
    throw new InvalidInputError("give --owner or --after: the accounts of one owner are one page");
  }
  const place = storeLocation(context, options);
  const { out, note, invocation } = context;
  const found = await withStore(place, "openExisting", (stores) =>
    owner === undefined
      ? stores.outer.list(DEFAULT_TENANT, { after, limit: limit + 1 })
      : stores.outer.of(DEFAULT_TENANT, owner),
  );
  const now = Date.now();
  const shown = (owner === undefined ? found.slice(0, limit) : found).map((account) => shownAccount(account, now));
  if (json === true) for (const account of shown) out(JSON.stringify(accountRow(account, now)));
  else if (shown.length > 0) {
    tableLines(
      columns,
      shown.flatMap((account) => rowsOf(account, now)),
      columnsOf(context),
    ).forEach(out);
  } else if (after !== undefined) out(`There are no more accounts above the agents in ${place.name}.`);
  else {
    const whose = owner === undefined ? "account" : `account of owner ${oneLine(owner)}`;
    out(
      `There is no ${whose} above the agents in ${place.name}; createRuntime({ accounts }) sets limits, and the first call opens them.`,
    );
  }
  const last = shown.at(-1);
  if (found.length <= shown.length || last === undefined) return exitCodes.success;
  const words = [...(options.limit === undefined ? [] : ["--limit", String(limit)]), "--after", last.id];
  const more = `More: ${commandLine(invocation, "budget", [...words, ...place.words])}`;
  if (json === true) [more, ...place.remarks].forEach(note);
  else ["", more, ...place.remarks].forEach(out);
  return exitCodes.success;
}

/** An account as a line of JSON: amounts in the units of its limits, times in milliseconds since the epoch. */
function accountRow({ id, limits, used, reserved, unconfirmed, outer }: Account, now: number) {
  const { scope, name, window, startsAt, endsAt } = outer ?? {};
  const hasEnded = typeof endsAt === "number" && endsAt <= now;
  const times = hasEnded ? { startsAt: null, renewsAt: null } : { startsAt, renewsAt: endsAt };
  return { accountId: id, scope, name, window, ...times, limits, used, reserved, unconfirmed };
}

const columns: readonly Column[] = [
  { title: "ACCOUNT", minWidth: 12 },
  { title: "LIMIT", align: "right" },
  { title: "USED", align: "right" },
  { title: "RESERVED", align: "right" },
  { title: "LEFT", align: "right" },
  { title: "RENEWS", leaveOut: 1 },
  { title: "ID", leaveOut: 2 },
];

function rowsOf(account: Account, now: number): string[][] {
  const { id, outer } = account;
  const name = oneLine(accountText(id));
  const renewal = renewalText(outer?.endsAt ?? null, now);
  const limits = forecastsOf(account, now);
  if (limits.length === 0) {
    const [used, reserved] = [account.used.tokens, account.reserved.tokens];
    return [
      [name, "none", amountText("maxTokens", used), usedText("maxTokens", reserved, 0), "-", renewal, oneLine(id)],
    ];
  }
  return limits.map(({ limit, used, reserved, max }) => {
    const amount = (value: number): string => usedText(limit, value, max);
    const left = amount(Math.max(0, max - used - reserved));
    const held = reserved === 0 ? "-" : amount(reserved);
    return [name, amountText(shownLimit(limit, id), max), amount(used), held, left, renewal, oneLine(id)];
  });
}
