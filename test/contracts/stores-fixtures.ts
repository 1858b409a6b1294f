import type { Budget, NewAccount } from "../../src/budget/index.ts";
import { limitsOf } from "../../src/budget/index.ts";
import type { AgentIdentity, AgentKey } from "../../src/state/index.ts";
import { turnIdOf } from "../../src/state/index.ts";
import type { Batch, CommitOutcome, Committed, ProcessIdentity, Stores } from "../../src/stores/index.ts";
import { type MakeEntry, starting } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "./names.ts";

export const LEASE_MS = 2000;

/** A process of another boot: only its heartbeat shows whether it is alive. */
export const elsewhere: ProcessIdentity = { processId: "elsewhere", pid: 1, bootId: "another boot" };
export const here: ProcessIdentity = { processId: "here", pid: process.pid, bootId: "this boot" };

export function agentKey(agentId: string = ROOT, tenant: string = TENANT): AgentKey {
  return { tenant, agentId };
}

export function identityOf(agentId: string = ROOT, changes: Partial<AgentIdentity> = {}): AgentIdentity {
  return {
    tenant: TENANT,
    agentId,
    rootAgentId: agentId,
    parentAgentId: null,
    parentTurnId: null,
    parentStep: null,
    parentCallId: null,
    depth: 0,
    definition: { name: "clerk", hash: "h1" },
    ownerId: null,
    sessionId: null,
    createdAt: NOW,
    accountId: null,
    parentAccountId: null,
    grantedTools: null,
    maxDepth: 3,
    turnLimits: null,
    metadata: {},
    ...changes,
  };
}

export function accountOf(id: string, budget: Budget = {}, changes: Partial<NewAccount> = {}): NewAccount {
  return { id, agentId: ROOT, turnId: null, parentId: null, limits: limitsOf(budget), ...changes };
}

/** An agent held by a process, with its owner's current epoch and seq. */
export class Owner {
  readonly stores: Stores;
  readonly key: AgentKey;
  epoch = 0;
  seq = 0;
  #batches = 0;

  constructor(stores: Stores, key: AgentKey) {
    this.stores = stores;
    this.key = key;
  }

  async acquire(process: ProcessIdentity = here, now: number = NOW): Promise<this> {
    await this.stores.registerProcess(process, now);
    const outcome = await this.stores.acquire(this.key, process.processId, LEASE_MS, now);
    if (outcome.type !== "acquired") throw new Error(`the agent could not be acquired: ${JSON.stringify(outcome)}`);
    this.epoch = outcome.epoch;
    this.seq = outcome.seq;
    return this;
  }

  /** The next batch. Entries are functions of the envelope. */
  batch(parts: BatchParts = {}): Batch {
    this.#batches += 1;
    const { entries = [], ...others } = parts;
    return {
      id: `${this.key.agentId}/${this.epoch}/${this.#batches}`,
      key: this.key,
      epoch: this.epoch,
      expectedSeq: this.seq,
      entries: entries.map((make, index) => make({ seq: this.seq + 1 + index, at: NOW, epoch: this.epoch })),
      messages: [],
      artifacts: [],
      cleared: null,
      owned: null,
      requests: [],
      closedRequests: [],
      closedTurnId: null,
      moves: [],
      spawns: [],
      posts: [],
      acknowledged: [],
      clearedTimers: [],
      ...others,
    };
  }

  async commit(parts: BatchParts = {}, now: number = NOW): Promise<Committed> {
    const [outcome] = await this.stores.commit([this.batch(parts)], now);
    return this.moved(outcome);
  }

  /** Records that a batch was applied. */
  moved(outcome: CommitOutcome | undefined): Committed {
    if (outcome?.type !== "committed") throw new Error(`not committed: ${JSON.stringify(outcome)}`);
    this.seq = outcome.entries.at(-1)?.seq ?? this.seq;
    return outcome;
  }
}

export type BatchParts = Partial<Omit<Batch, "id" | "key" | "epoch" | "expectedSeq" | "entries">> & {
  readonly entries?: readonly MakeEntry[];
};

/** A root agent with its accounts, started and held by this process. */
export async function openAgent(stores: Stores, options: OpenOptions = {}): Promise<Owner> {
  const { agentId = ROOT, tenant = TENANT, budget = {}, turnBudget = {} } = options;
  const lifetime = accountOf(`agent:${agentId}`, budget, { agentId });
  await stores.createAgent(identityOf(agentId, { tenant, accountId: lifetime.id }), lifetime);
  const owner = await new Owner(stores, agentKey(agentId, tenant)).acquire();
  const turnId = turnIdOf(agentId, 1);
  const turn = accountOf(`turn:${turnId}`, turnBudget, { agentId, turnId, parentId: lifetime.id });
  await owner.commit({ entries: [starting], owned: ready, moves: [{ type: "open", account: turn }] });
  return owner;
}

export interface OpenOptions {
  readonly agentId?: string;
  readonly tenant?: string;
  readonly budget?: Budget;
  readonly turnBudget?: Budget;
}

export const ready = { status: "ready", turnCount: 0, lastActivity: NOW, error: null, checkpoint: null } as const;
