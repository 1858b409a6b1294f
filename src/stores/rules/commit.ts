import {
  agentAccountId,
  type LimitName,
  limitNames,
  type Moment,
  outerPartsOf,
  type ReservationAsk,
  turnAccountId,
} from "../../budget/index.ts";
import { InvariantError } from "../../errors/index.ts";
import {
  type AccountHolder,
  type AgentKey,
  agentOfAccount,
  type AgentRecord,
  type AgentRequest,
  type Entry,
  type InboxItem,
  type Intent,
  isIntent,
  newRecord,
  type Refusal,
  turnIdOf,
} from "../../state/index.ts";
import type { Batch, Post, SpawnOrder, WakeOrder } from "./batch.ts";
import { budgetRequestOf } from "./budget-requests.ts";
import { Ledger } from "./ledger.ts";
import { abort, effectiveMark } from "./marks.ts";
import type { CommitOutcome, Committed } from "./outcomes.ts";
import type { Judgement, OuterAnswer, OuterAnswers } from "./outer-answers.ts";
import { changeQueued, type QueueChange, withQueued } from "./queued-calls.ts";
import { changeRequests } from "./requests.ts";
import type { AddedRow, Tables, Work } from "./tables.ts";
import { deferSteer, noteSteered } from "./steer.ts";
import { addTurn, moveTurns } from "./turns.ts";

/**
 * Applies one batch inside a transaction of the adapter. An exception undoes the transaction; everything else is an outcome. Refusals are
 * decided before their writes, so that a refused intent never loses a fact. `outer`: the answers of the accounts above the root.
 */
export function commitBatch(tables: Tables, batch: Batch, moment: Moment, outer?: OuterAnswers): CommitOutcome {
  const head = tables.head(batch.key);
  if (head.batchId === batch.id) {
    const applied = tables.lastOutcome(batch.key);
    if (applied) return applied;
  }
  const isOthers = head.holder === null || (batch.processId !== undefined && head.holder !== batch.processId);
  if (head.epoch !== batch.epoch || head.seq !== batch.expectedSeq || isOthers) {
    return { type: "stale", epoch: head.epoch, seq: head.seq };
  }
  const record = tables.agent(batch.key);
  if (!record) throw new InvariantError(`cannot commit a batch of agent ${batch.key.agentId}: it has no record`);
  checkOrder(batch);

  const ledger = new Ledger(tables, { id: batch.id, key: batch.key, rootAgentId: record.rootAgentId }, moment);
  if (batch.definition) tables.keepDefinition(batch.key.tenant, record.rootAgentId, batch.definition);
  for (const move of batch.moves) ledger.apply(move);
  const posted = new Set<string>();
  if (batch.cleared !== null) tables.clearMessages(batch.key);
  if (batch.cleared === "all") tables.clearArtifacts(batch.key);
  raiseDecided(tables, batch, ledger);
  const asked: AgentRequest[] = [];
  const judged = judgeAll(tables, batch, record, { ledger, posted, outer, asked });
  const entries = withVersions(judged, saveArtifacts(tables, batch));

  leaveQueues(batch, record, ledger);

  tables.removeFromInbox(batch.key, batch.acknowledged);
  for (const id of batch.clearedTimers) tables.clearTimer(batch.key, id);
  for (const timer of batch.timers ?? []) tables.setTimer(timer);
  for (const post of batch.posts) for (const agentId of deliver(tables, batch, post)) posted.add(agentId);
  const { closedTurnId } = batch;
  const queue = concernsQueued(record, entries)
    ? changeQueued(tables, batch.key, record.queued, { entries, closedTurnId }, moment)
    : undefined;
  const next = nextRecord(record, batch, queue);
  if (next !== record) tables.putAgent(next);
  moveTurns(tables, record, next, { entries, closedTurnId, now: moment.now });
  const { openRequests } = head;
  const opening = asked.length === 0 ? batch : { ...batch, requests: [...batch.requests, ...asked] };
  const requests = concernsRequests(opening, openRequests)
    ? changeRequests(tables, opening, openRequests)
    : { open: openRequests, timers: [] };
  const warnings = ledger.warn().map((one) => ({ ...one, holder: holderOfAccount(tables, record, one.accountId) }));
  const { posted: woken, timers: alarms, accounts } = ledger.flush();
  if (closedTurnId !== null) ledger.close(turnAccountId(closedTurnId));
  for (const agentId of woken) posted.add(agentId);
  noteSteered(tables, batch.key, entries);
  for (const item of batch.deferred ?? []) {
    deferSteer(tables, batch.key, item, moment.now);
    posted.add(batch.key.agentId);
  }
  if (batch.wake && wake(tables, batch.key, batch.wake, moment.now)) posted.add(batch.key.agentId);

  const { cursor, follows }: AddedRow =
    entries.length > 0 ? tables.addRow(batch.key, entries, batch.messages) : { cursor: 0 };
  const timers = [...alarms, ...requests.timers, ...(batch.timers ?? []), ...(queue?.timers ?? [])];
  const told = [...posted];
  const outcome: Committed = { type: "committed", entries, cursor, warnings, posted: told, timers };
  const { seq, at } = entries.at(-1) ?? head;
  const holder = batch.leaves ? null : head.holder;
  const { open } = requests;
  tables.putHead(
    batch.key,
    {
      epoch: head.epoch,
      holder,
      seq,
      at,
      sign: moment.steady,
      batchId: batch.id,
      openRequests: open,
      work: workOf(next),
    },
    outcome,
  );
  return { type: "committed", entries, cursor, warnings, posted: told, timers, follows, accounts };
}

/** Posts an item and returns the agents to notify. An abort also reaches all agents below, with or without an owner. */
function deliver(tables: Tables, batch: Batch, { agentId, item }: Post): readonly string[] {
  const to = { tenant: batch.key.tenant, agentId };
  const at = tables.agent(to);
  const isAsleep = at?.status === "shutdown";
  if (item.kind !== "abort") return tables.addToInbox(to, item) && !isAsleep ? [agentId] : [];
  const { turnId, by, reason, stopReason } = item;
  const outcome = abort(tables, to, { turnId, by, reason, stopReason }, item.at);
  if (outcome.type === "notFound") return [];
  // Notified even if it got this abort before, because it may have lost its owner since.
  const isToNotify = at?.openTurnId !== null && !isAsleep;
  return isToNotify ? [...new Set([agentId, ...outcome.posted])] : outcome.posted;
}

/**
 * Opens a turn without a caller's request, unless a turn is open or queued, which will see the child's end anyway. Returns `true` if the
 * agent's inbox got an item.
 */
function wake(tables: Tables, key: AgentKey, order: WakeOrder, now: number): boolean {
  const record = tables.agent(key);
  if (!record || record.openTurnId !== null) return false;
  const number = record.nextTurnNumber;
  const turnId = turnIdOf(key.agentId, number);
  const { childId, actorId, inputMessageIds } = order;
  // A turn that a child wakes has no budget of its own: it spends the remaining budget of the turn that started the child.
  const parentAccountId = childId && tables.account(key.tenant, agentAccountId(childId))?.parentId;
  const item: InboxItem = {
    kind: "turn",
    key: `turn:${turnId}`,
    at: now,
    turnId,
    number,
    input: null,
    actorId,
    limits: null,
    ...(childId === undefined ? {} : { wokenBy: childId }),
    ...(inputMessageIds ? { inputMessageIds: [...inputMessageIds] } : {}),
    ...(parentAccountId ? { parentAccountId } : {}),
  };
  const changed = { ...record, openTurnId: turnId, nextTurnNumber: number + 1 };
  tables.putAgent(changed);
  addTurn(tables, changed, { turnId, number }, now);
  return tables.addToInbox(key, item);
}

/** Skips the work for most batches, which do not affect queued calls. */
function concernsQueued(record: AgentRecord, entries: readonly Entry[]): boolean {
  return record.queued !== undefined || entries.some((entry) => entry.type === "tool.started" && entry.queue);
}

function concernsRequests({ requests, closedRequests, closedTurnId }: Batch, openRequests: number): boolean {
  return requests.length > 0 || closedRequests.length > 0 || (closedTurnId !== null && openRequests > 0);
}

function nextRecord(record: AgentRecord, batch: Batch, queue: QueueChange | undefined): AgentRecord {
  const changed = queue ? withQueued(record, queue.queued) : record;
  const owned = batch.owned ? { ...changed, ...batch.owned } : changed;
  if (batch.closedTurnId === null || owned.openTurnId !== batch.closedTurnId) return owned;
  const [next = null, ...queuedTurnIds] = owned.queuedTurnIds;
  const abort = owned.abort?.turnId === batch.closedTurnId ? null : owned.abort;
  return { ...owned, openTurnId: next, queuedTurnIds, abort };
}

/** The work that remains after a commit of this record. */
export function workOf({ openTurnId, status }: AgentRecord): Work {
  return openTurnId !== null && status !== "shutdown" ? "open" : "none";
}

/** A journal has neither gaps nor forks, and messages are stored with the entry that added them. */
function checkOrder({ id, key, entries, messages, expectedSeq }: Batch): void {
  if (messages.length > 0 && entries.length === 0) {
    throw new InvariantError(`batch ${id} of agent ${key.agentId} has messages but no entry`);
  }
  for (const [index, { seq }] of entries.entries()) {
    const right = expectedSeq + 1 + index;
    if (seq === right) continue;
    throw new InvariantError(`batch ${id} of agent ${key.agentId}: entry ${index} has seq ${seq}, not ${right}`);
  }
}

/** Stores a batch's artifacts; versions count from 1 per name. Returns the versions by artifact id. */
function saveArtifacts(tables: Tables, batch: Batch): ReadonlyMap<string, number> | undefined {
  if (batch.artifacts.length === 0) return undefined;
  const versions = new Map<string, number>();
  for (const artifact of batch.artifacts) {
    const version = versionOf(tables, batch.key, artifact.artifactId, artifact.name);
    tables.putArtifact(batch.key, { ...artifact, version });
    versions.set(artifact.artifactId, version);
  }
  return versions;
}

/** Saving an artifact again does not create a new version. */
function versionOf(tables: Tables, key: AgentKey, artifactId: string, name: string): number {
  const saved = tables.artifactMeta(key, artifactId);
  return saved?.name === name ? saved.version : tables.newestVersion(key, name) + 1;
}

/** Sets the versions in the entries about saved artifacts. */
function withVersions(entries: readonly Entry[], versions: ReadonlyMap<string, number> | undefined): readonly Entry[] {
  if (!versions) return entries;
  return entries.map((entry) => {
    const version = entry.type === "artifact.saved" ? versions.get(entry.artifactId) : undefined;
    return version === undefined ? entry : { ...entry, version };
  });
}

/**
 * Removes asks that will not be repeated from the reservation queues, so that no call waits behind them and nothing is kept free for
 * them: their turn has ended, their agent is shut down or held, or the code that asked is gone.
 */
function leaveQueues({ key, entries, owned, closedTurnId }: Batch, record: AgentRecord, ledger: Ledger): void {
  const { agentId } = key;
  const over = closedTurnId ?? (owned?.status === "shutdown" ? record.openTurnId : null);
  if (over !== null) ledger.leave(turnAccountId(over), ({ ask }) => ask.agentId === agentId);
  for (const entry of entries) {
    if (entry.type !== "tool.settled") continue;
    const ofCall = `${entry.turnId}:${entry.callId}:`;
    ledger.leave(turnAccountId(entry.turnId), ({ ask }) => ask.key.startsWith(ofCall));
  }
}

/** Applies the decisions of people that add to an account of the tree; those above it were charged before. */
function raiseDecided(tables: Tables, { key, entries }: Batch, ledger: Ledger): void {
  for (const entry of entries) {
    const decided = entry.type === "budget.freed" ? entry.decided : undefined;
    if (!decided?.limits || outerPartsOf(decided.accountId)) continue;
    const account = tables.account(key.tenant, decided.accountId);
    if (!account) continue;
    const raised = limitNames.flatMap((name) => {
      const [max, more] = [account.limits[name], decided.limits?.[name]];
      return max === undefined || more === undefined
        ? []
        : [[name, Math.min(Number.MAX_SAFE_INTEGER, max + more)] as const];
    });
    ledger.setLimits(account.id, { ...account.limits, ...Object.fromEntries(raised) });
  }
}

/** Time that has passed cannot be added to. */
function isAddable(limit: LimitName): boolean {
  return limit !== "deadlineAt" && limit !== "maxActiveMs";
}

function shownRequest({ requestId, callId, name, prompt }: AgentRequest): NonNullable<Refusal["request"]> {
  return { requestId, callId, name, prompt };
}

interface Judging {
  readonly ledger: Ledger;
  readonly posted: Set<string>;
  readonly outer: OuterAnswers | undefined;
  /** The requests that ask for more budget, new ones and open ones. */
  readonly asked: AgentRequest[];
}

function judgeAll(
  tables: Tables,
  batch: Batch,
  record: AgentRecord,
  { ledger, posted, outer, asked }: Judging,
): Entry[] {
  if (!batch.entries.some(isIntent)) return [...batch.entries];
  const mayBeMarked = record.pause !== null || record.abort !== null || record.parentAgentId !== null;
  return batch.entries.map((entry) => {
    if (!isIntent(entry)) return entry;
    const mark = mayBeMarked ? effectiveMark(tables, record, entry.turnId) : undefined;
    if (mark) return refusal(entry, mark);
    if (entry.type === "child.spawned" && isSpawned(tables, batch, entry.seq)) {
      posted.add(entry.childId);
      return entry;
    }
    const judgement = judge(entry, ledger, batch.key.agentId, outer?.bySeq.get(entry.seq));
    if (!judgement.granted) {
      const { reason, accountId, limit, used, max, needed, renewsAt } = judgement;
      const message = reason === "unpriced" && "model" in entry ? unpriced(entry.model, accountId) : undefined;
      const holder = holderOfAccount(tables, record, accountId);
      const figures = { used, max, holder, renewsAt };
      const isAbove = outerPartsOf(accountId) !== undefined;
      const asks = isAbove ? judgement.asks === true : ledger.account(accountId)?.limits.askAtLimit === true;
      const request =
        asks && reason === "budget" && entry.type === "model.requested" && isAddable(limit)
          ? budgetRequestOf(tables, batch, record, {
              intent: entry,
              met: { accountId, limit, used, max, needed, figures },
            })
          : undefined;
      if (request) asked.push(request);
      return refusal(entry, {
        reason: request ? "mustWait" : reason,
        ...(request ? { request: shownRequest(request) } : {}),
        accountId,
        limit,
        // An owner must not see what others have spent.
        ...(outerPartsOf(accountId)?.scope === "tenant" ? {} : { used, max }),
        ...(needed === undefined ? {} : { needed }),
        ...(renewsAt === undefined ? {} : { renewsAt }),
        ...(holder ? { holder } : {}),
        ...(message === undefined ? {} : { message }),
      });
    }
    if (entry.type === "child.spawned") spawn(tables, orderOf(batch, entry.seq), ledger, posted);
    if (entry.type === "model.requested" || entry.type === "generate.requested") {
      const { reservation, last } = judgement;
      const holder = last && holderOfAccount(tables, record, last.accountId);
      return { ...entry, reservation, ...(last ? { last: { ...last, holder } } : {}) };
    }
    return entry;
  });
}

function judge(intent: Intent, ledger: Ledger, agentId: string, outer: OuterAnswer | undefined): Judgement {
  if (intent.type === "model.requested") forgetSideCalls(intent.ask, ledger);
  if (intent.type === "model.requested" || intent.type === "generate.requested")
    return ledger.reserve(intent.ask, outer);
  if (intent.type === "tool.started" && intent.attempt > 1) return { granted: true, reservation: null };
  return ledger.countToolCall(intent.accountId, agentId, outer);
}

/** When a turn asks for its next model call, none of its hooks and tools is waiting for a `generate()` call any more. */
function forgetSideCalls({ accountId, agentId, key }: ReservationAsk, ledger: Ledger): void {
  ledger.leave(accountId, ({ ask }) => ask.agentId === agentId && ask.key !== key);
}

function unpriced(model: string, accountId: string): string {
  return `the price of model "${model}" is unknown, but account ${accountId} limits the cost: set a price for every agent that spends on it, for instance price: { inputPerMillion: 0.25, outputPerMillion: 2 }`;
}

function refusal(
  intent: Intent,
  why: Pick<
    Refusal,
    | "reason"
    | "request"
    | "accountId"
    | "limit"
    | "used"
    | "max"
    | "needed"
    | "renewsAt"
    | "holder"
    | "agentId"
    | "message"
  >,
): Refusal {
  const callId = "callId" in intent && intent.callId !== undefined ? { callId: intent.callId } : {};
  const { seq, at, epoch, turnId, step } = intent;
  // No other entry of the call contains them.
  const told =
    intent.type === "tool.started" && intent.arguments !== undefined
      ? { arguments: intent.arguments, effect: intent.effect }
      : {};
  return { type: "intent.refused", seq, at, epoch, turnId, step, ...callId, intent: intent.type, ...why, ...told };
}

/** The holder of an account as seen by the spending agent, to describe a limit to people; no agent holds an account above the root. */
function holderOfAccount(tables: Tables, spender: AgentRecord, accountId: string): AccountHolder | undefined {
  if (outerPartsOf(accountId)) return undefined;
  const agentId = agentOfAccount(accountId);
  if (agentId === spender.agentId) return { name: spender.definition.name, kinship: "own" };
  const name = tables.agent({ tenant: spender.tenant, agentId })?.definition.name ?? agentId;
  return { name, kinship: agentId === spender.parentAgentId ? "parent" : "ancestor" };
}

function orderOf(batch: Batch, seq: number): SpawnOrder {
  const order = batch.spawns.find((one) => one.seq === seq);
  if (!order) throw new InvariantError(`child.spawned ${seq} has no spawn order`);
  return order;
}

/** Spawning twice is one spawn: if the child exists, its tool call was already counted. */
function isSpawned(tables: Tables, batch: Batch, seq: number): boolean {
  const { tenant, agentId } = orderOf(batch, seq).identity;
  return tables.agent({ tenant, agentId }) !== undefined;
}

/** Creates the child, its account and its first turn. */
function spawn(tables: Tables, order: SpawnOrder, ledger: Ledger, posted: Set<string>): void {
  const key = { tenant: order.identity.tenant, agentId: order.identity.agentId };
  ledger.open(order.account);
  const record = newRecord(order.identity);
  if (order.definition) tables.keepDefinition(key.tenant, record.rootAgentId, order.definition);
  tables.putAgent({ ...record, openTurnId: order.turn.turnId, nextTurnNumber: order.turn.number + 1 });
  tables.addToInbox(key, order.turn);
  posted.add(key.agentId);
}
