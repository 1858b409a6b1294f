import {
  type Account,
  type Hold,
  type Limits,
  type Moment,
  outerAccount,
  outerAccountId,
  type OuterLimits,
  outerPartsOf,
  type ReservationAsk,
  type ReservedAmounts,
  settle,
  type Settlement,
  withMore,
} from "../../budget/index.ts";
import { type Entry, type InboxItem, type Intent, isIntent, type Timer } from "../../state/index.ts";
import type { Batch } from "./batch.ts";
import { Ledger } from "./ledger.ts";
import type { HoldEnd, OuterAnswer, OuterAnswers, OuterHold } from "./outer-answers.ts";
import type { CommitOutcome } from "./outcomes.ts";
import type { LedgerTables, Tables } from "./tables.ts";

/*
 * Accounts above the roots: what all teams of an owner, and all owners of a tenant, spend together.
 *
 * Invariants
 * 1. A model call is made only after it was reserved on these accounts: the hold is written in the transaction of the tree's batch, or in
 *    one before it.
 * 2. A hold ends once: it is settled at what its call used, or returned if its intent was not granted. Both are found under the hold's id, so
 *    that a batch that is sent again changes nothing.
 * 3. A hold whose batch may still be applied is never returned: its agent has the epoch of the hold, and has not come to its seq.
 */

/** Whether the batch concerns accounts above its tree. */
export function concernsOuter(batch: Batch): boolean {
  const { above, moves, entries, closedTurnId } = batch;
  if (moves.some((move) => move.type === "settle" && move.settlement.reservation.hold !== undefined)) return true;
  if (raisesOf(batch).length > 0) return true;
  return above !== undefined && above.length > 0 && (closedTurnId !== null || entries.some(isIntent));
}

/** Settles the calls of a batch that have ended, and reserves for its intents, each completely or not at all. */
export function chargeOuter(tables: Tables, batch: Batch, moment: Moment): OuterAnswers {
  const { key, above = [], moves } = batch;
  const { ledger, woken } = ledgerOf(tables, key.tenant, { id: batch.id, agentId: key.agentId }, moment);
  // Windows renew first: a call counts in the window in which it is settled.
  const accountId = openAll(ledger, above, moment.now);
  for (const move of moves) if (move.type === "settle") settleHold(tables, ledger, batch, move.settlement);
  for (const { accountId: raisedId, limits, requestId } of raisesOf(batch)) {
    const account = ledger.account(raisedId);
    if (account) ledger.put(withMore(account, limits, { now: moment.now, requestId }));
  }
  const bySeq = new Map<number, OuterAnswer>();
  if (accountId !== undefined) {
    ledger.leave(accountId, ({ ask }) => isOver(batch, ask));
    const countsCalls = ledger
      .chainIds(accountId)
      .some((id) => ledger.account(id)?.limits.maxTreeToolCalls !== undefined);
    for (const intent of batch.entries.filter(isIntent)) {
      if (!asksAbove(intent, countsCalls)) continue;
      bySeq.set(intent.seq, answerOf(tables, ledger, batch, { intent, accountId, at: moment.now }));
    }
  }
  const warnings = ledger.warn();
  const { accounts } = ledger.flush();
  return { bySeq, warnings, accounts, woken: [...woken] };
}

/** The decisions in a batch that add to accounts above the root. */
function raisesOf({ entries }: Batch) {
  return entries.flatMap((entry) => {
    const decided = entry.type === "budget.freed" ? entry.decided : undefined;
    const { accountId = "", limits, requestId = "" } = decided ?? {};
    return limits && outerPartsOf(accountId) ? [{ accountId, limits, requestId }] : [];
  });
}

function asksAbove(intent: Intent, countsCalls: boolean): boolean {
  if (intent.type === "model.requested" || intent.type === "generate.requested") return true;
  return countsCalls && (intent.type === "child.spawned" || intent.attempt === 1);
}

interface Asked {
  readonly intent: Intent;
  /** The account of the owner, or of the tenant where the owner has none. */
  readonly accountId: string;
  readonly at: number;
}

function answerOf(tables: Tables, ledger: Ledger, batch: Batch, { intent, accountId, at }: Asked): OuterAnswer {
  const { agentId, tenant } = batch.key;
  const id = `${batch.id}:${intent.seq}`;
  const known = tables.outerRow(tenant, "hold", id);
  if (known) return { granted: true, id, reservation: known.reservation };
  const ask = "ask" in intent ? { ...intent.ask, accountId, finalAnswer: false } : undefined;
  const judgement = ask ? ledger.reserve(ask) : ledger.countToolCall(accountId, agentId);
  if (!judgement.granted) {
    const { outer, limits } = ledger.account(judgement.accountId) ?? {};
    const asks = limits?.askAtLimit === true ? { asks: true } : {};
    return { ...judgement, ...asks, ...(typeof outer?.endsAt === "number" ? { renewsAt: outer.endsAt } : {}) };
  }
  const { reservation } = judgement;
  const { epoch, processId = null, isApart } = batch;
  const { seq } = intent;
  const accountIds = ledger.chainIds(accountId);
  const openedAt = accountIds.map((one) => ledger.account(one)?.openedAt ?? 0);
  const opensStep = ask?.opensStep === true;
  const hold: Hold = {
    id,
    agentId,
    epoch,
    seq,
    processId,
    at,
    accountIds,
    openedAt,
    reservation,
    opensStep,
    ...(isApart ? { isApart } : {}),
  };
  tables.putOuterRow(tenant, "hold", id, hold);
  return { granted: true, id, reservation };
}

/** Opens or renews the accounts, the upper ones first. Returns the id of the first one. */
function openAll(ledger: Ledger, above: readonly OuterLimits[], now: number): string | undefined {
  let parentId: string | null = null;
  for (const limits of above.toReversed()) {
    const account: Account = outerAccount(ledger.account(outerAccountId(limits)), limits, { parentId, now });
    if (account !== ledger.account(account.id)) ledger.put(account);
    parentId = account.id;
  }
  return parentId ?? undefined;
}

/** Whether a waiting ask of the batch's agent will not be repeated. */
function isOver({ key, entries, owned, closedTurnId }: Batch, ask: ReservationAsk): boolean {
  if (ask.agentId !== key.agentId) return false;
  if (closedTurnId !== null || owned?.status === "shutdown") return true;
  return entries.some((entry) => {
    if (entry.type === "model.requested") return ask.key !== entry.ask.key;
    return entry.type === "tool.settled" && ask.key.startsWith(`${entry.turnId}:${entry.callId}:`);
  });
}

/** Changes nothing for a hold that has ended, and for one of another agent: a fork has the entries of its origin. */
function settleHold(tables: Tables, ledger: Ledger, { key }: Batch, settlement: Settlement): void {
  const hold = holdOf(tables, key.tenant, settlement.reservation.hold);
  if (hold?.agentId !== key.agentId || !hold.reservation) return;
  const reservation = {
    ...settlement.reservation,
    tokens: hold.reservation.tokens,
    costMicros: hold.reservation.costMicros,
  };
  ledger.changeAll(hold.accountIds, (accounts) => settle(accounts, { ...settlement, reservation }));
  tables.removeOuterRow(key.tenant, "hold", hold.id);
}

function holdOf(tables: Tables, tenant: string, id: string | undefined): Hold | undefined {
  return id === undefined ? undefined : tables.outerRow(tenant, "hold", id);
}

/** The holds of a batch that do not stay as they are after its commit. */
export function endedHolds({ bySeq }: OuterAnswers, outcome: CommitOutcome): HoldEnd[] {
  const entries = new Map(outcome.type === "committed" ? outcome.entries.map((entry) => [entry.seq, entry]) : []);
  return [...bySeq].flatMap(([seq, answer]) => (answer.granted ? (endOf(answer, entries.get(seq)) ?? []) : []));
}

/** `undefined` for a hold that stays as it is. */
export function endOf(
  { id, reservation: held }: Omit<OuterHold, "granted">,
  entry: Entry | undefined,
): HoldEnd | undefined {
  if (held === null) {
    return { id, as: entry?.type === "tool.started" || entry?.type === "child.spawned" ? "keep" : "return" };
  }
  const own = entry && "reservation" in entry ? entry.reservation : undefined;
  if (own?.hold !== id) return { id, as: "return" };
  const { tokens, costMicros } = own;
  return tokens < held.tokens || costMicros < held.costMicros ? { id, as: { tokens, costMicros } } : undefined;
}

/** Returns the agents to post to. */
export function endHolds(tables: Tables, tenant: string, ends: readonly HoldEnd[], moment: Moment): readonly string[] {
  const [first] = ends;
  if (!first) return [];
  const { ledger, woken } = ledgerOf(tables, tenant, { id: `end:${first.id}`, agentId: "" }, moment);
  for (const { id, as } of ends) {
    const hold = holdOf(tables, tenant, id);
    if (!hold) continue;
    if (typeof as === "object" && hold.reservation) {
      ledger.changeAll(hold.accountIds, (accounts) => accounts.map((account) => withReserved(account, hold, as)));
      const reservation = { ...hold.reservation, ...as };
      tables.putOuterRow(tenant, "hold", id, { ...hold, reservation });
      continue;
    }
    if (as === "return") {
      const nothing = { tokens: 0, costMicros: 0 };
      ledger.changeAll(hold.accountIds, (accounts) =>
        accounts.map((account) => withoutCount(withReserved(account, hold, nothing), hold)),
      );
    }
    tables.removeOuterRow(tenant, "hold", id);
  }
  ledger.flush();
  return [...woken];
}

/** The account with another amount in place of the held one. */
function withReserved(account: Account, { reservation }: Hold, { tokens, costMicros }: ReservedAmounts): Account {
  if (!reservation) return account;
  const { reserved } = account;
  return {
    ...account,
    reserved: {
      tokens: Math.max(0, reserved.tokens - reservation.tokens + tokens),
      costMicros: Math.max(0, reserved.costMicros - reservation.costMicros + costMicros),
    },
  };
}

/** Without the step or tool call of the hold. One that was counted before the account renewed is not counted now. */
function withoutCount(account: Account, hold: Hold): Account {
  if (!isCountedIn(account, hold)) return account;
  const { reservation, opensStep } = hold;
  const { used } = account;
  if (!reservation) {
    return { ...account, used: { ...used, treeToolCalls: Math.max(0, used.treeToolCalls - 1) } };
  }
  return opensStep ? { ...account, used: { ...used, treeSteps: Math.max(0, used.treeSteps - 1) } } : account;
}

/** Whether the hold was counted in the account's present window. Its time does not tell, because the clocks of processes differ. */
function isCountedIn({ id, openedAt }: Account, hold: Hold): boolean {
  const charged = hold.openedAt?.[hold.accountIds.indexOf(id)];
  return charged === undefined ? hold.at >= openedAt : charged === openedAt;
}

/** Settles a hold whose call has an unknown end in full. Returns the agents to post to. */
export function settleInFull(tables: Tables, tenant: string, holdId: string, moment: Moment): readonly string[] {
  const hold = holdOf(tables, tenant, holdId);
  if (!hold?.reservation) return [];
  const { reservation, agentId } = hold;
  const { tokens, costMicros } = reservation;
  const settlement = { reservation, tokens, costMicros, usage: null, unconfirmed: true };
  return settleOuter(
    tables,
    { tenant, agentId },
    { ...settlement, reservation: { ...reservation, hold: holdId } },
    moment,
  );
}

/** Settles one hold of an agent apart from its batches. Returns the agents to post to. */
export function settleOuter(
  tables: Tables,
  key: Batch["key"],
  settlement: Settlement,
  moment: Moment,
): readonly string[] {
  const cause = { id: `settle:${settlement.reservation.hold ?? ""}`, agentId: key.agentId };
  const { ledger, woken } = ledgerOf(tables, key.tenant, cause, moment);
  settleHold(tables, ledger, { key } as Batch, settlement);
  ledger.flush();
  return [...woken];
}

/** Adds to the limits of an account until it renews. Returns `undefined` if there is no such account. */
export function raiseOuter(
  tables: Tables,
  tenant: string,
  { accountId, more }: { readonly accountId: string; readonly more: Limits },
  moment: Moment,
): { readonly account: Account; readonly woken: readonly string[] } | undefined {
  const { ledger, woken } = ledgerOf(tables, tenant, { id: `raise:${moment.now}`, agentId: "" }, moment);
  const known = outerPartsOf(accountId) ? ledger.account(accountId) : undefined;
  if (!known) return undefined;
  ledger.put(withMore(known, more, { now: moment.now }));
  ledger.flush();
  return { account: ledger.account(accountId) ?? known, woken: [...woken] };
}

/** Passes amounts that were kept free and not used on to the next waiters, and wakes the agents whose posts were lost again. */
export function endOuterClaims(tables: Tables, tenant: string, topId: string, moment: Moment): readonly string[] {
  const { ledger, woken } = ledgerOf(tables, tenant, { id: `claims:${topId}:${moment.steady}`, agentId: "" }, moment);
  const overdue = (tables.outerRow(tenant, "waiters", topId) ?? []).filter(({ wokenAt }) => wokenAt !== null);
  ledger.endClaims(topId);
  ledger.flush();
  // The process that woke them may have died before it posted to them.
  return [...new Set([...woken, ...overdue.map(({ ask }) => ask.agentId)])];
}

/** The item that makes a waiting agent ask again. */
export function freedItem(id: string, at: number): InboxItem {
  return { kind: "budget.freed", key: `budget.freed:above:${id}`, at };
}

/** A ledger over the rows above the roots. Agents of other trees are only noted: the caller posts to them. */
function ledgerOf(
  tables: Tables,
  tenant: string,
  { id, agentId }: { readonly id: string; readonly agentId: string },
  moment: Moment,
): { readonly ledger: Ledger; readonly woken: ReadonlySet<string> } {
  const woken = new Set<string>();
  const rows: LedgerTables = {
    account: (of, accountId) => tables.outerRow(of, "account", accountId),
    putAccount: (of, _root, account) => tables.putOuterRow(of, "account", account.id, account),
    waiters: (of, account) => tables.outerRow(of, "waiters", account.id) ?? [],
    putWaiters: (of, _root, { account, waiters }) =>
      waiters.length === 0
        ? tables.removeOuterRow(of, "waiters", account.id)
        : tables.putOuterRow(of, "waiters", account.id, waiters),
    addToInbox: (key) => {
      woken.add(key.agentId);
      return true;
    },
    // Every process ends the claims of these accounts regularly.
    setTimer: (_timer: Timer) => undefined,
    clearTimer: () => undefined,
  };
  return { ledger: new Ledger(rows, { id, key: { tenant, agentId }, rootAgentId: "" }, moment), woken };
}
