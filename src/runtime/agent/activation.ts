import type { Snapshot } from "xstate";
import {
  attemptKeyOf,
  type FactParts,
  type Host,
  type Proposed,
  type RecordedCall,
  requestKeyOf,
  type SpawnRequest,
} from "../../actors/index.ts";
import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock } from "../../base/index.ts";
import { type Account, type Binding, chainOf, type Limits, turnFlagsOf } from "../../budget/index.ts";
import { LeaseLostError, type StoreUnavailableError } from "../../errors/index.ts";
import type {
  AgentKey,
  AgentRecord,
  CallState,
  Checkpoint,
  Entry,
  FactBody,
  InboxItem,
  IntentBody,
  Lifecycle,
  Message,
  OwnedFields,
  Refusal,
} from "../../state/index.ts";
import type { Committed } from "../../stores/index.ts";
import type { Auth, SpawnedChild } from "../../tools/index.ts";
import { Activity, AgentStatusView, TurnWaiters, ActorTree } from "./actor-tree.ts";
import { backgroundChildrenOf } from "./background-children.ts";
import { callQueueOf } from "./call-queue.ts";
import { Conversation, type ActivationPorts, LiveView } from "./live-view.ts";
import { EffectNotes, IntentGate, spawnBody, spawnedBefore, spawnOrderOf } from "./intents.ts";
import { JournalWriter, type LossReason } from "./journal-writer.ts";
import { recordedCallFor } from "./recorded-calls.ts";
import { assertWritable } from "./writable.ts";

/**
 * One live agent: the host that its effects act through.
 * Owns: the actors, the writer, the conversation in memory. Does not own: the lease's renewal, the inbox, other agents.
 */
export class Activation extends LiveView implements Host {
  readonly key: AgentKey;
  readonly definition: AgentDefinition;
  readonly epoch: number;
  readonly clock: Clock;
  readonly writer: JournalWriter;
  readonly conversation: Conversation;
  readonly inFlight: Host["inFlight"];
  readonly background: Host["background"];
  readonly queue: Host["queue"];
  readonly viewers: Host["viewers"];
  readonly #ports: ActivationPorts<Activation>;
  protected readonly actors: ActorTree;
  /** The status shown by handles; a passive or restored agent keeps the view it had before. */
  standing: AgentStatusView;
  readonly notes = new EffectNotes();
  readonly gate = new IntentGate();
  readonly #waiters = new TurnWaiters(this);
  readonly #activity = new Activity(this);
  /** Whether the agent was used since the last check for idle agents. */
  isUsed = true;
  /** When the agent was last found unused, in monotonic time. */
  idleSince = 0;
  /** Whether the agent has ended a turn since its activation. */
  hasEndedTurn = false;
  /** Inbox items that were taken; they leave the inbox with the commit that contains their entries. */
  readonly taken = new Set<string>();
  /** Number of inbox reads in progress. */
  drains = 0;
  #untaken: readonly string[] = nothing;
  #looks = 0;
  /** The read that determined `#untaken`. */
  #untakenAt = 0;
  #identity: AgentRecord;
  #owned: OwnedFields;
  #lost: LossReason | undefined;

  constructor(start: ActivationStart, ports: ActivationPorts<Activation>) {
    super(ports);
    const { key, record, definition, epoch, snapshot } = start;
    this.key = key;
    this.#identity = record;
    this.definition = definition;
    this.epoch = epoch;
    this.clock = ports.clock;
    this.inFlight = {
      run: (key, signal, start, isRepeatable = true) =>
        ports.inFlight.run(key, { signal, isDiscarded: () => this.isLost, isRepeatable }, start),
      has: (key) => ports.inFlight.has(key),
    };
    this.background = backgroundChildrenOf(this, ports);
    this.queue = callQueueOf(this, ports);
    this.viewers = ports.viewersOf(record);
    this.#ports = ports;
    this.#owned = ownedFieldsOf(record);
    this.conversation = new Conversation(start.history, start.turnEntries);
    const { processId } = ports;
    this.writer = new JournalWriter({ ...start, processId }, ports.committer, {
      now: () => ports.clock.now(),
      asking: () => {
        const turn = this.openTurnId === null ? undefined : this.turn(this.openTurnId);
        return { actorId: turn?.actorId ?? null, isGuarded: ports.guardsRequests };
      },
      above: () => ports.outer.limitsOf(this.#identity.ownerId),
      deliver: (entry) => this.#deliver(entry),
      onCommitted: (outcome) => this.#onCommitted(outcome),
      onStale: (error) => this.discard(error),
      onRefused: (error, isGivenUp) => this.#onRefused(error, isGivenUp),
      onFailure: (cause) => this.#onFailure(cause),
    });
    this.actors = new ActorTree({ agentId: record.agentId, snapshot, inspections: ports.inspections }, this);
    this.standing = start.standing ?? new AgentStatusView();
    this.standing.follow(this);
  }

  /** Starts the actors, and with them the effects that their states require. */
  start(): void {
    this.actors.start();
    const move = this.#activity.begin();
    if (move) this.writer.move(move);
  }

  /** The agent's record as of its activation, with the current budgets. */
  get identity(): AgentRecord {
    return this.#identity;
  }

  /** Applies changed budgets of the agent's life or of accounts above it. `limits`: those of its life. */
  rebind(binding: Binding | undefined, limits: Limits | undefined): void {
    const { binding: _, ...rest } = this.#identity;
    const turnLimits = limits ? turnFlagsOf(limits) : rest.turnLimits;
    this.#identity = { ...rest, turnLimits, ...(binding ? { binding } : {}) };
  }

  get owned(): OwnedFields {
    return this.#owned;
  }

  /** Keys of the inbox items that could not be taken at the last read. A process that posts other items triggers another read. */
  get untaken(): readonly string[] {
    return this.#untaken;
  }

  /** Whether the inbox may contain more items than were taken: a queued turn, or items that a read in progress finds. */
  get mayHaveMore(): boolean {
    return this.drains > 0 || this.#untaken.length > 0;
  }

  /** The number of an inbox read that starts now. */
  nextLook(): number {
    return (this.#looks += 1);
  }

  /** Ignores a read that started before the one already recorded. */
  setUntaken(keys: readonly string[], look: number): void {
    if (look < this.#untakenAt) return;
    this.#untakenAt = look;
    this.#untaken = keys;
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  /** Whether a turn is open and waits. */
  get isAtRest(): boolean {
    return this.openTurnId !== null && !this.#activity.isActive;
  }

  /** Deletes the conversation, and with `all` the artifacts too. */
  clear(scope: "conversation" | "all", by: string): void {
    this.append({ type: "conversation.cleared", by, scope });
    this.writer.clear(scope);
    this.conversation.clear();
  }

  /** Drops the model call in flight: it is made again after the pause. */
  dropModelCall(): void {
    const request = this.openTurnId === null ? null : this.turn(this.openTurnId)?.openRequest;
    if (!request) return;
    this.notes.drop(requestKeyOf(request));
    this.#ports.inFlight.cut(requestKeyOf(request));
  }

  append(body: FactBody, parts?: FactParts): Entry {
    assertWritable(body, parts);
    if (parts?.messages && !this.#lost) this.conversation.addMessages(parts.messages);
    return this.writer.append(body, this.#ports.guardsRequests && parts?.requests ? guarded(parts) : parts);
  }

  async propose<Body extends Exclude<IntentBody, { type: "child.spawned" }>>(
    body: Body,
  ): Promise<Proposed<Body["type"]>> {
    const callId = "callId" in body ? body.callId : null;
    if (this.gate.isClosed && this.gate.holds(body.type)) return await this.gate.hold(callId);
    const entry = await this.writer.propose(body);
    // An intent granted while the agent was being shut down does not start its work: it counts as interrupted.
    if (this.gate.isShut && body.type !== "model.requested") return await this.gate.hold(callId);
    return proposedOf(entry);
  }

  get isShuttingDown(): boolean {
    return this.gate.isShut;
  }

  async proposeSpawn(request: SpawnRequest): Promise<Proposed<"child.spawned">> {
    const body = spawnBody(this, request);
    if (spawnedBefore(this.undelivered(), body)) await this.delivered();
    const known = spawnedBefore(this.memory(request.turnId).entries, body);
    if (known) return { granted: true, entry: known };
    // A child of a tool's code belongs to a call that has started, which the gate allows to finish.
    if (this.gate.isShut || (request.callId !== null && this.gate.holds(body.type)))
      return await this.gate.hold(request.callId);
    return proposedOf(await this.writer.propose(body, (seq) => spawnOrderOf(this, request, body, seq)));
  }

  committed(): Promise<void> {
    return this.writer.committed();
  }

  delivered(): Promise<void> {
    return this.writer.delivered();
  }

  undelivered(): readonly Entry[] {
    return this.writer.undelivered;
  }

  live(): Promise<Host> {
    return this.#lost ? this.#ports.successor(this) : Promise.resolve(this);
  }

  isOut({ callId, attempt, startedEpoch }: CallState): boolean {
    if (startedEpoch === null) return false;
    return startedEpoch === this.epoch || this.inFlight.has(attemptKeyOf(callId, attempt));
  }

  quiet(): Promise<void> {
    return this.#waiters.quiet();
  }

  freed(refusal: Refusal, run: string): Promise<void> {
    return this.#waiters.freed(refusal, run);
  }

  moved(): Promise<void> {
    return this.#waiters.moved();
  }

  async accounts(accountId: string): Promise<readonly Account[]> {
    const { tenant, rootAgentId } = this.#identity;
    const all = new Map((await this.#ports.stores.accounts(tenant, rootAgentId)).map((one) => [one.id, one]));
    return chainOf({ ask: { accountId } }, (id) => all.get(id));
  }

  recordedCall(call: CallState): Promise<RecordedCall | undefined> {
    return recordedCallFor(this.#ports.stores, this.identity, call);
  }

  effectOver(): void {
    if (!this.#lost) this.#ports.onEffectOver(this);
  }

  confirmPause(): void {
    if (this.openTurnId !== null) this.append({ type: "agent.paused", turnId: this.openTurnId });
  }

  resolveAuth(turnId: string): Promise<Auth | undefined> {
    return this.#ports.auth.resolve(this.identity, turnId, this.turn(turnId)?.actorId ?? null);
  }

  child(_turnId: string, childId: string): SpawnedChild["result"] {
    return this.#ports.childResult(this, childId);
  }

  /** Stops the actors and refuses everything from now on. Uncommitted entries are dropped. */
  discard(why: LossReason): void {
    if (this.#lost) return;
    this.#lost = why;
    this.standing.settle(this);
    this.actors.stop();
    this.writer.close(why);
    this.#waiters.close(why);
    this.gate.discard(why);
    this.#ports.onLost(this);
  }

  /** An agent that gave up a refused batch is recovered from the stored state. */
  #onRefused(cause: StoreUnavailableError, isGivenUp: boolean): void {
    const { agentId } = this.key;
    if (!isGivenUp) return this.#ports.onRefused(this, cause);
    this.discard(new LeaseLostError(`agent ${agentId} gave up a batch that the stores refused`, { cause }));
    this.#ports.notify([agentId]);
  }

  /** The agent is not recovered in this process, because its effects would be paid for again and fail in the same way. */
  #onFailure(cause: unknown): void {
    this.discard(new LeaseLostError(`agent ${this.key.agentId} could not commit`, { cause }));
    this.#ports.onFailed(this.key.agentId, cause);
  }

  #deliver(entry: Entry): void {
    this.conversation.note(entry);
    this.actors.deliver(entry);
    this.#waiters.look(entry);
    this.#noteOwned(entry);
    const change = this.#activity.look(entry);
    if (!change) return;
    this.writer.move(change.move);
    const turnId = this.openTurnId;
    if (turnId === null || change.waitsFor.length === 0) return;
    this.append({ type: "turn.waiting", turnId, requestIds: [...change.waitsFor] });
  }

  #noteOwned(entry: Entry): void {
    const owned = nextOwnedFields(this.#owned, entry, this.actors);
    if (owned === this.#owned) return;
    this.#owned = owned;
    this.writer.setOwned(owned);
    if (entry.type === "turn.ended") this.writer.closeTurn(entry.turnId);
  }

  /** Makes this agent the source of the status that handles of an earlier activation show. */
  standIn(standing: AgentStatusView): void {
    if (standing === this.standing) return;
    this.standing.giveWayTo(standing);
    this.standing = standing;
    standing.follow(this);
    if (this.#lost) standing.settle(this);
  }

  /** Drops state that is only read during a turn, once the turn's end is stored and reported. */
  forgetTurn(turnId: string): void {
    this.conversation.forgetTurn(turnId);
    this.actors.forgetTurn(turnId);
  }

  #onCommitted(outcome: Committed): void {
    this.isUsed = true;
    this.notes.noteCommitted(outcome.entries);
    const turnId = this.openTurnId ?? this.lastTurnId;
    if (turnId !== null) for (const one of outcome.warnings) this.append({ type: "budget.warning", turnId, ...one });
    this.#ports.onCommitted(this, outcome);
  }
}

function guarded(parts: FactParts): FactParts {
  return { ...parts, requests: parts.requests?.map((request) => ({ ...request, isGuarded: true })) };
}

/** The committed entry as the result of the proposal. */
function proposedOf<Type extends IntentBody["type"]>(entry: Entry): Proposed<Type> {
  return (entry.type === "intent.refused" ? { granted: false, entry } : { granted: true, entry }) as Proposed<Type>;
}

/** The start of a live agent: its lease, and its state recovered from the journal. */
export interface ActivationStart {
  readonly key: AgentKey;
  readonly record: AgentRecord;
  readonly definition: AgentDefinition;
  readonly epoch: number;
  /** Seq and time of the last committed entry. */
  readonly seq: number;
  readonly at: number;
  /** `undefined` for an agent that has no entries. */
  readonly snapshot: Snapshot<unknown> | undefined;
  /** Entries of the open turn; empty when none is open. */
  readonly turnEntries: readonly Entry[];
  readonly history: readonly Message[];
  /** Aborts that were posted while no process owned the agent; they are taken before its open turn continues. */
  readonly aborts: readonly InboxItem[];
  /** The status of an agent that was passive. */
  readonly standing?: AgentStatusView | undefined;
}

const nothing: readonly string[] = [];

/** The fields of the record that its owner writes. */
function ownedFieldsOf(record: AgentRecord): OwnedFields {
  const { status, turnCount, lastActivity, error, checkpoint } = record;
  return { status, turnCount, lastActivity, error, checkpoint };
}

/** The fields after one more entry; the same object if they do not change. */
function nextOwnedFields(
  owned: OwnedFields,
  entry: Entry,
  agent: { readonly lifecycle: Lifecycle; checkpoint(): Checkpoint["agent"] },
): OwnedFields {
  switch (entry.type) {
    case "agent.started":
    case "agent.paused":
    case "agent.resumed":
    case "agent.shutdown":
      return { ...owned, status: agent.lifecycle, lastActivity: entry.at };
    case "turn.ended":
      return {
        status: agent.lifecycle,
        turnCount: entry.number,
        lastActivity: entry.at,
        error: entry.error,
        checkpoint: { version: 1, seq: entry.seq, agent: agent.checkpoint() },
      };
    default:
      return owned;
  }
}
