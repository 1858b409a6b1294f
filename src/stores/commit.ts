import { InvariantError } from "../errors/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type Entry,
  type Intent,
  isIntent,
  newRecord,
  type Refusal,
} from "../state/index.ts";
import type { Batch, SpawnOrder } from "./batch.ts";
import { type Judgement, Ledger } from "./ledger.ts";
import type { Committed, CommitOutcome } from "./ports.ts";
import type { Tables } from "./tables.ts";

/**
 * Applies one batch inside a transaction that the adapter has opened. Throwing undoes it; every other way out is an
 * outcome. All refusals are decided before anything is written for them, so a refused intent never loses a fact.
 */
export function commitBatch(tables: Tables, batch: Batch, now: number): CommitOutcome {
  const head = tables.head(batch.key);
  if (head.batchId === batch.id && head.outcome) return head.outcome;
  if (head.epoch !== batch.epoch || head.seq !== batch.expectedSeq || head.holder === null) {
    return { type: "stale", epoch: head.epoch, seq: head.seq };
  }
  const record = tables.agent(batch.key);
  if (!record) throw new InvariantError(`a batch came for agent ${batch.key.agentId}, which has no record`);

  const ledger = new Ledger(tables, batch.key, record.rootAgentId, now);
  for (const move of batch.moves) ledger.apply(move);
  const posted = new Set<string>();
  const entries = judgeAll(tables, batch, record, ledger, posted);

  tables.addMessages(batch.key, batch.messages);
  tables.addArtifacts(batch.key, batch.artifacts);
  tables.removeFromInbox(batch.key, batch.acknowledged);
  for (const id of batch.clearedTimers) tables.clearTimer(batch.key, id);
  for (const post of batch.posts) {
    if (tables.addToInbox({ tenant: batch.key.tenant, agentId: post.agentId }, post.item)) posted.add(post.agentId);
  }
  if (batch.owned || batch.closedTurnId !== null) tables.putAgent(nextRecord(record, batch));
  const { warnings, posted: woken, timers } = ledger.flush();
  for (const agentId of woken) posted.add(agentId);

  const cursor = entries.length > 0 ? tables.addRow(batch.key, entries) : 0;
  const outcome: Committed = { type: "committed", entries, cursor, warnings, posted: [...posted], timers };
  const last = entries.at(-1);
  tables.putHead(batch.key, {
    ...head,
    seq: last?.seq ?? head.seq,
    at: last?.at ?? head.at,
    batchId: batch.id,
    outcome,
  });
  return outcome;
}

function nextRecord(record: AgentRecord, batch: Batch): AgentRecord {
  const owned = batch.owned ? { ...record, ...batch.owned } : record;
  if (batch.closedTurnId === null || owned.openTurnId !== batch.closedTurnId) return owned;
  const [next = null, ...queuedTurnIds] = owned.queuedTurnIds;
  const abort = owned.abort?.turnId === batch.closedTurnId ? null : owned.abort;
  return { ...owned, openTurnId: next, queuedTurnIds, abort };
}

function judgeAll(tables: Tables, batch: Batch, record: AgentRecord, ledger: Ledger, posted: Set<string>): Entry[] {
  if (!batch.entries.some(isIntent)) return [...batch.entries];
  const mark = standingMark(tables, batch.key, record);
  return batch.entries.map((entry) => {
    if (!isIntent(entry)) return entry;
    if (mark) return refusal(entry, { reason: mark.reason, agentId: mark.agentId });
    const judgement = judge(entry, ledger, batch.key.agentId);
    if (!judgement.granted) {
      const { reason, accountId, limit } = judgement;
      return refusal(entry, { reason, accountId, limit });
    }
    if (entry.type === "child.spawned") spawn(tables, batch, entry.seq, ledger, posted);
    if (entry.type === "model.requested" || entry.type === "generate.requested") {
      return { ...entry, reservation: judgement.reservation };
    }
    return entry;
  });
}

function judge(intent: Intent, ledger: Ledger, agentId: string): Judgement {
  if (intent.type === "model.requested" || intent.type === "generate.requested") return ledger.reserve(intent.ask);
  if (intent.type === "tool.started" && intent.attempt > 1) return { granted: true, reservation: null };
  return ledger.countToolCall(intent.accountId, agentId);
}

/** The nearest mark on the agent or above it that forbids new intents. */
function standingMark(
  tables: Tables,
  key: AgentKey,
  record: AgentRecord,
): { reason: "paused" | "aborted"; agentId: string } | undefined {
  let paused: { reason: "paused"; agentId: string } | undefined;
  let turnId = record.openTurnId;
  for (let at: AgentRecord | undefined = record; at; ) {
    const { abort, agentId } = at;
    if (abort && abort.turnId === turnId) return { reason: "aborted", agentId };
    if (at.pause) paused ??= { reason: "paused", agentId };
    turnId = at.parentTurnId;
    at = at.parentAgentId === null ? undefined : tables.agent({ tenant: key.tenant, agentId: at.parentAgentId });
  }
  return paused;
}

function refusal(intent: Intent, why: Pick<Refusal, "reason" | "accountId" | "limit" | "agentId">): Refusal {
  const callId = "callId" in intent && intent.callId !== undefined ? { callId: intent.callId } : {};
  const { seq, at, epoch, turnId, step } = intent;
  return { type: "intent.refused", seq, at, epoch, turnId, step, ...callId, intent: intent.type, ...why };
}

/** Creates the child, its account and its first turn where they are absent: spawning twice is one spawn. */
function spawn(tables: Tables, batch: Batch, seq: number, ledger: Ledger, posted: Set<string>): void {
  const order: SpawnOrder | undefined = batch.spawns.find((one) => one.seq === seq);
  if (!order) throw new InvariantError(`child.spawned ${seq} came without its spawn order`);
  const key = { tenant: order.identity.tenant, agentId: order.identity.agentId };
  posted.add(key.agentId);
  if (tables.agent(key)) return;
  ledger.open(order.account);
  const record = newRecord(order.identity);
  tables.putAgent({ ...record, openTurnId: order.turn.turnId, nextTurnNumber: order.turn.number + 1 });
  tables.addToInbox(key, order.turn);
}
