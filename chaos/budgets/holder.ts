import type { Limits, Reservation, ReservationAsk } from "../../src/budget/index.ts";
import type { Entry, InboxItem } from "../../src/state/index.ts";
import type { Batch, Committed, Stores } from "../../src/stores/index.ts";
import type { PlainCall } from "./reference.ts";

export const TENANT = "chaos";

export interface HolderContext {
  readonly stores: Stores;
  readonly processId: string;
  readonly rootAgentId: string;
}

/** The owner of one agent of the tree: commits requests and settlements, and reads the agent's inbox. */
export class Holder {
  readonly agentId: string;
  readonly node: number;
  readonly #place: HolderContext;
  readonly #isAlone: boolean;
  #epoch = 0;
  #seq = 0;
  #batches = 0;

  /** `isAlone`: makes one call at a time, as model calls of a turn; otherwise it makes side calls. */
  constructor(place: HolderContext, node: number, isAlone: boolean) {
    this.#place = place;
    this.#isAlone = isAlone;
    this.node = node;
    this.agentId = agentIdAt(place.rootAgentId, node);
  }

  get #key() {
    return { tenant: TENANT, agentId: this.agentId };
  }

  get #turnId(): string {
    return `${this.agentId}#1`;
  }

  async open(above: number | null, limits: Limits, now: number): Promise<void> {
    const { stores, rootAgentId } = this.#place;
    const { agentId } = this;
    const parentAgentId = above === null ? null : agentIdAt(rootAgentId, above);
    const parentTurnId = parentAgentId === null ? null : `${parentAgentId}#1`;
    await stores.createAgent(
      {
        tenant: TENANT,
        agentId,
        rootAgentId,
        parentAgentId,
        parentTurnId,
        parentStep: null,
        parentCallId: null,
        depth: parentAgentId === null ? 0 : 1,
        definition: { name: "holder", hash: "1" },
        ownerId: null,
        sessionId: null,
        createdAt: now,
        accountId: null,
        parentAccountId: parentTurnId === null ? null : `turn:${parentTurnId}`,
        grantedTools: null,
        maxDepth: 9,
        turnLimits: null,
        metadata: {},
      },
      null,
    );
    await this.takeUp(now);
    const owned = { status: "ready", turnCount: 0, lastActivity: now, error: null, checkpoint: null } as const;
    await this.#commit({ owned }, now);
    await stores.openTurn(this.#key, { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, now);
    const id = `turn:${this.#turnId}`;
    const parentId = parentTurnId === null ? null : `turn:${parentTurnId}`;
    const account = { id, agentId, turnId: this.#turnId, parentId, limits };
    await this.#commit({ moves: [{ type: "open", account }], acknowledged: [id] }, now);
  }

  /** Takes the agent over as a new owner; the previous owner is dead. */
  async takeUp(now: number): Promise<void> {
    const { stores, processId } = this.#place;
    const lease = await stores.acquire(this.#key, processId, 0, now);
    if (lease.type !== "acquired") throw new Error(`${this.agentId} could not be taken over: ${lease.type}`);
    this.#epoch = lease.epoch;
    this.#seq = lease.seq;
  }

  async ask(call: PlainCall, acknowledged: readonly string[], now: number): Promise<Asked> {
    const { entries, posted } = await this.#commit({ entries: [this.#intent(call, now)], acknowledged }, now);
    const [entry] = entries;
    if (entry?.type === "intent.refused") return { posted, reason: entry.reason };
    const reservation = entry && "reservation" in entry ? entry.reservation : null;
    if (!reservation) throw new Error("a call was granted without a reservation");
    return { posted, reservation };
  }

  async settle(reservation: Reservation, tokens: number, costMicros: number, unconfirmed: boolean, now: number) {
    const settlement = { reservation, tokens, costMicros, usage: null, unconfirmed };
    return (await this.#commit({ moves: [{ type: "settle", settlement }] }, now)).posted;
  }

  async acknowledge(acknowledged: readonly string[], now: number): Promise<readonly string[]> {
    return (await this.#commit({ acknowledged }, now)).posted;
  }

  async end(now: number): Promise<readonly string[]> {
    return (await this.#commit({ closedTurnId: this.#turnId }, now)).posted;
  }

  async pause(now: number): Promise<readonly string[]> {
    const outcome = await this.#place.stores.pause(this.#key, "chaos", now);
    return outcome.type === "marked" ? outcome.posted : [];
  }

  async resume(now: number): Promise<void> {
    await this.#place.stores.resume(this.#key, "chaos", now);
  }

  /** Fires the agent's due timers. Returns the agents that were told of free budget. */
  async hearAlarms(now: number): Promise<readonly string[]> {
    const { stores } = this.#place;
    const posted: string[] = [];
    for (const timer of await stores.dueTimers(now, 100)) {
      if (timer.kind !== "claim" || timer.agentId !== this.agentId) continue;
      posted.push(...(await stores.fireTimer(timer, now)).posted);
    }
    return posted;
  }

  async inbox(): Promise<InboxItem[]> {
    return await this.#place.stores.inbox(this.#key);
  }

  #intent(call: PlainCall, now: number): Entry {
    const { promptTokens, outputTokens, opensStep, price, key } = call;
    const ask: ReservationAsk = {
      key,
      accountId: `turn:${this.#turnId}`,
      agentId: this.agentId,
      promptTokens,
      promptBound: promptTokens,
      outputTokens,
      minimumOutputTokens: Math.min(outputTokens, 256),
      price: price && { inputPerMillion: price[0], outputPerMillion: price[1] },
      opensStep,
      model: "scripted",
    };
    const envelope = { seq: this.#seq + 1, at: now, epoch: this.#epoch, turnId: this.#turnId, step: 1 };
    const request = { ...envelope, model: "scripted", promptHash: "p", ask, reservation: null };
    if (!this.#isAlone) return { type: "generate.requested", ...request, run: key, index: 0 };
    return { type: "model.requested", ...request, attempt: 1, messageId: key, price: ask.price };
  }

  async #commit(parts: Partial<Batch>, now: number): Promise<Committed> {
    this.#batches += 1;
    const batch: Batch = {
      id: `${this.agentId}/${this.#epoch}/${this.#batches}`,
      key: this.#key,
      epoch: this.#epoch,
      expectedSeq: this.#seq,
      entries: [],
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
      ...parts,
    };
    const [outcome] = await this.#place.stores.commit([batch], now);
    if (outcome?.type !== "committed") throw new Error(`${batch.id} is ${outcome?.type}`);
    this.#seq = outcome.entries.at(-1)?.seq ?? this.#seq;
    return outcome;
  }
}

export type Asked =
  | { readonly posted: readonly string[]; readonly reservation: Reservation }
  | { readonly posted: readonly string[]; readonly reason: string };

export function agentIdAt(rootAgentId: string, node: number): string {
  return node === 0 ? rootAgentId : `${rootAgentId}~${node}`;
}
