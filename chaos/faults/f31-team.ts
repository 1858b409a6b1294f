import { randomUUID } from "node:crypto";
import type { AgentIdentity, Entry, Message } from "../../src/state/index.ts";
import type { Batch, BudgetMove } from "../../src/stores/index.ts";

/** The JSON lines that a writer prints. */
export type WriterLine =
  | { readonly type: "acknowledged"; readonly seq: number; readonly messageId: string }
  | { readonly type: "unavailable"; readonly code: string }
  | { readonly type: "failed"; readonly message: string };

export interface WriterOrders {
  readonly store: string;
  /** Path of its log. */
  readonly log: string;
  readonly agentId: string;
  /** Batches to write, unless it is killed first. */
  readonly batches: number;
  /** Milliseconds from the first acknowledged batch to its death; `null` if it is not killed. */
  readonly killAfterMs: number | null;
  /** Milliseconds from one batch to the next. */
  readonly pauseMs: number;
  readonly maxBytes: number | null;
}

export const TENANT = "chaos";
export const ROOT = "team";
export const ROOT_ACCOUNT = `agent:${ROOT}`;

/** Tokens of a batch, also stored in its entry. The journal and the account must agree on the sum. */
export function tokensIn(entry: Entry): number {
  return entry.type === "warning" ? Number(entry.message) : 0;
}

export function identityOf(agentId: string): AgentIdentity {
  const isRoot = agentId === ROOT;
  return {
    tenant: TENANT,
    agentId,
    rootAgentId: ROOT,
    parentAgentId: isRoot ? null : ROOT,
    parentTurnId: isRoot ? null : `${ROOT}#1`,
    parentStep: null,
    parentCallId: null,
    depth: isRoot ? 0 : 1,
    definition: { name: "writer", hash: "1" },
    ownerId: null,
    sessionId: null,
    createdAt: Date.now(),
    accountId: `agent:${agentId}`,
    parentAccountId: isRoot ? null : ROOT_ACCOUNT,
    grantedTools: null,
    maxDepth: 3,
    turnLimits: null,
    metadata: {},
  };
}

export function batchAt(agentId: string, epoch: number, seq: number): { batch: Batch; message: Message } {
  const tokens = 1 + (seq % 7);
  const at = Date.now();
  const accountId = `agent:${agentId}`;
  const reservation = { accountId, tokens: 0, costMicros: 0, outputTokens: 1, model: "scripted" };
  const settlement = { reservation, tokens, costMicros: tokens, usage: null, unconfirmed: false };
  const moves: BudgetMove[] = [{ type: "settle", settlement }];
  const message: Message = {
    role: "assistant",
    id: `${agentId}/${seq + 1}`,
    createdAt: at,
    content: "words ".repeat(60 + (seq % 200)),
    origin: "model",
  };
  const entries: Entry[] = [
    { type: "warning", seq: seq + 1, at, epoch, code: "tokens", message: String(tokens) },
    { type: "agent.starting", seq: seq + 2, at, epoch },
  ];
  const rest = {
    owned: null,
    closedTurnId: null,
    artifacts: [],
    spawns: [],
    posts: [],
    acknowledged: [],
    clearedTimers: [],
    requests: [],
    closedRequests: [],
    cleared: null,
  };
  const key = { tenant: TENANT, agentId };
  const batch = { id: randomUUID(), key, epoch, expectedSeq: seq, entries, messages: [message], moves, ...rest };
  return { batch, message };
}
