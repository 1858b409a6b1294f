import { deepFreeze } from "../../base/index.ts";
import {
  type Account,
  addModelUse,
  type Budget,
  type LimitName,
  type ModelUse,
  billedModel,
  modelUseOf,
  noModelUse,
  outerPartsOf,
  totalUse,
  turnAccountId,
  type UseByModel,
} from "../../budget/index.ts";
import {
  agentOfAccount,
  agentOfTurn,
  type AgentRecord,
  endOfTurn,
  type Entry,
  type EntryOf,
  errorsOf,
  type ExecutionState,
  type Json,
  numberOfTurn,
  signalOfLimit,
  type StopSignal,
  textOf,
  turnOf,
} from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { LimitStop, Spending, TurnResult, TurnSpending } from "../api/turn-types.ts";
import type { LiveView } from "./live-view.ts";
import type { TurnFailure } from "./turn-failures.ts";

/** A turn's result from its last entry, its execution and its answer; frozen, because all waiters share it. */
function turnResultOf(
  entry: EntryOf<"turn.ended">,
  execution: ExecutionState | null,
  text: string,
  { entries, account }: { readonly entries: readonly Entry[]; readonly account: Account | undefined },
): TurnResult {
  const output = entry.outcome === "completed" ? outputOf(entries) : undefined;
  const { turnId, outcome, stopReason, signal, usage, costMicros, steps, toolCalls, error } = entry;
  return deepFreeze({
    agentId: agentOfTurn(turnId),
    turnId,
    status: outcome,
    text: text === "" && outcome === "failed" ? `Task failed: ${error?.message ?? "the turn failed"}` : text,
    stopReason,
    signal,
    stop: signal && limitStopOf(signal),
    finalAnswer: outcome === "completed" ? lastCallOf(entries) : null,
    usage,
    cost: costMicros === null ? null : costMicros / 1_000_000,
    spent: turnSpending(entries, account),
    steps,
    toolCalls,
    error,
    errors: execution ? errorsOf(execution) : error ? [error] : [],
    execution,
    ...(output === undefined ? {} : { output }),
  });
}

/**
 * Adds the error thrown in this process to the result. Cause and source are not enumerable, so that JSON and copies omit them.
 */
export function resultWith(result: TurnResult, { error: cause, source }: TurnFailure): TurnResult {
  if (!result.error) return result;
  const error = Object.defineProperties({ ...result.error }, { cause: { value: cause }, source: { value: source } });
  return deepFreeze({ ...result, error });
}

/** The result of a turn that has just ended in this process; `undefined` if its commit did not change its account. */
export function resultAtEnd(
  live: LiveView,
  entry: EntryOf<"turn.ended">,
  accounts: readonly Account[],
): TurnResult | undefined {
  const { turnId, outputMessageId } = entry;
  const account = accounts.find(({ id }) => id === turnAccountId(turnId));
  if (!account) return undefined;
  const text = outputMessageId === null ? "" : live.conversation.text(outputMessageId);
  const { entries } = live.memory(turnId);
  return turnResultOf(entry, live.turn(turnId)?.execution ?? null, text, { entries, account });
}

/** The spending of a turn: its own from its entries, that of the tree from its account. */
function turnSpending(entries: readonly Entry[], account: Account | undefined): TurnSpending {
  const own = ownUse(entries);
  const tree = account?.models ?? own;
  return {
    own: spendingOf(totalUse(own)),
    tree: spendingOf(totalUse(tree)),
    byModel: Object.fromEntries(Object.entries(tree).map(([model, use]) => [model, spendingOf(use)])),
  };
}

/** A model's usage in the public format. */
function spendingOf({ costMicros, unpricedCalls, ...use }: ModelUse): Spending {
  return { ...use, cost: unpricedCalls > 0 ? null : costMicros / 1_000_000 };
}

/** The usage of the settled calls in these entries. */
export function ownUse(entries: readonly Entry[]): UseByModel {
  const models = new Map<string, ModelUse>();
  for (const entry of entries) {
    const settlement = "settlement" in entry ? entry.settlement : null;
    const use = settlement && modelUseOf(settlement);
    if (!settlement || !use) continue;
    const model = billedModel(settlement);
    models.set(model, addModelUse(models.get(model) ?? noModelUse, use));
  }
  return Object.fromEntries(models);
}

/** The output of a turn whose answer was validated successfully. */
function outputOf(entries: readonly Entry[]): Json | undefined {
  const checked = entries.findLast((entry) => entry.type === "output.checked" && entry.valid);
  return checked?.type === "output.checked" && checked.valid ? checked.value : undefined;
}

/** The limit that made the turn's last call a final answer; `null` if further calls were allowed. */
function lastCallOf(entries: readonly Entry[]): LimitStop | null {
  const last = entries.findLast((entry) => entry.type === "model.requested");
  if (last?.type !== "model.requested" || !last.last) return null;
  const { limit, accountId } = last.last;
  return limitStopOf(signalOfLimit(limit, accountId, last.last));
}

/** The limit behind a signal; `null` if something else raised it. */
function limitStopOf({ reason, limit, accountId, used, max, message }: StopSignal): LimitStop | null {
  if (limit === undefined || accountId === undefined || reason === "error") return null;
  const figures = { used: used ?? null, max: max ?? null };
  const outer = outerPartsOf(accountId);
  return {
    reason,
    limit,
    agentId: outer ? (outer.name ?? "tenant") : agentOfAccount(accountId),
    accountId,
    ...figures,
    message,
    wayOn: wayOnOf(limit, accountId),
  };
}

/** The field of a budget that sets each limit. */
const fieldOf: Readonly<Partial<Record<LimitName, keyof Budget>>> = {
  maxCostMicros: "maxCost",
  maxActiveMs: "maxSeconds",
  deadlineAt: "deadline",
};

function wayOnOf(limit: LimitName, accountId: string): string {
  if (outerPartsOf(accountId)) {
    return "the account is above all agents of its owner or tenant: wait until it renews, or let an operator add to it (troupe budget ACCOUNT --max-cost …)";
  }
  if (!accountId.startsWith("turn:")) {
    return "the account outlives the turn, so a turn's budget cannot raise the limit; create an agent with a larger budget";
  }
  const field = fieldOf[limit] ?? limit;
  return `agent.executeTurn(null, { budget: { ${field}: … } }) continues from here with a new budget`;
}

/** The state of a turn at one read of the stores. */
interface TurnLook {
  /** `undefined` while the turn is open or unknown. */
  readonly result?: TurnResult | undefined;
  /** Its agent; `undefined` while the turn is unknown. */
  readonly record?: AgentRecord | undefined;
  /** The seq of an entry before all entries of the turn; an earlier read's value is kept. */
  readonly after: number | undefined;
  /** Whether the stores do not know the turn. */
  readonly isUnknown?: boolean;
}

/** Reads the result of an ended turn from the journal; `undefined` while it is open or unknown. */
export async function readTurnResult(stores: Stores, tenant: string, turnId: string): Promise<TurnResult | undefined> {
  return (await lookAtTurn(stores, tenant, turnId)).result;
}

/** Like `readTurnResult`. A second read passes the `after` of the first, so that it reads only the turn. */
export async function lookAtTurn(stores: Stores, tenant: string, turnId: string, after?: number): Promise<TurnLook> {
  const look = await stores.lookAtTurn({ tenant, agentId: agentOfTurn(turnId) }, turnId, after);
  if (!look || look.record.nextTurnNumber <= numberOfTurn(turnId)) return { after, isUnknown: true };
  const { record, past } = look;
  if (!past) return { after: record.checkpoint?.seq ?? 0, record };
  const { entries, answer, account } = past;
  const ended = endOfTurn(entries);
  if (!ended) return { after, record };
  const text = textOf(answer?.content ?? "");
  return { after, record, result: turnResultOf(ended, turnOf(entries)?.execution ?? null, text, { entries, account }) };
}
