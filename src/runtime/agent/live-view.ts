import type { InspectionEvent } from "xstate";
import type { Host, TurnMemory, Viewers } from "../../actors/index.ts";
import { type AgentDefinition, spawnLimitOf } from "../../agents/index.ts";
import { type Clock, type TraceHeaders, traceOf } from "../../base/index.ts";
import type { StoreUnavailableError } from "../../errors/index.ts";
import type { PriceBook } from "../../model/index.ts";
import type { Queues } from "../../queues/index.ts";
import {
  type AgentIdentity,
  type Artifact,
  type CallState,
  type Entry,
  isQueuedToSpawn,
  type Lifecycle,
  type Message,
  type TurnState,
  type WakingReport,
} from "../../state/index.ts";
import type { Committed, Stores } from "../../stores/index.ts";
import type { Auth, Slots, SpawnedChild } from "../../tools/index.ts";
import type { ActorTree } from "./actor-tree.ts";
import type { CallsInFlight } from "./calls-in-flight.ts";
import type { Committer } from "./committer.ts";
import type { Conversation } from "./conversation.ts";

type Lent = Pick<ActivationPorts, "prices" | "random" | "auth" | "redactorOf" | "slots" | "definitions" | "stores">;

/** The readable side of a live agent: the states of its machines, its conversation, and the services of its process. */
export abstract class LiveView {
  readonly prices: Lent["prices"];
  readonly #lent: Lent;

  constructor(lent: Lent) {
    this.prices = lent.prices;
    this.#lent = lent;
  }

  random(): number {
    return this.#lent.random();
  }

  auth(turnId: string): Auth | undefined {
    return this.#lent.auth(turnId);
  }

  redactorOf(turnId: string): (text: string) => string {
    return this.#lent.redactorOf(turnId);
  }

  slots(toolName: string, limit: number): Slots {
    return this.#lent.slots(toolName, limit);
  }

  get definitions(): Lent["definitions"] {
    return this.#lent.definitions;
  }

  protected abstract readonly actors: ActorTree;
  abstract readonly identity: AgentIdentity;
  abstract readonly definition: AgentDefinition;
  abstract readonly conversation: Conversation;

  get lifecycle(): Lifecycle {
    return this.actors.lifecycle;
  }

  get isPausing(): boolean {
    return this.actors.isPausing;
  }

  get openTurnId(): string | null {
    return this.actors.context.openTurnId;
  }

  get lastTurnId(): string | null {
    return this.actors.context.lastTurnId;
  }

  /** Running effects. If there are none, only an inbox item can move the agent. */
  get effects() {
    return this.actors.effects;
  }

  get openChildIds(): readonly string[] {
    return this.actors.context.openChildIds;
  }

  /** Background children whose end has not been reported. */
  get backgroundChildren() {
    return this.actors.context.background;
  }

  /** Reports since the last turn that call for a new one. */
  get waking(): readonly WakingReport[] {
    return this.actors.context.waking;
  }

  get turnEntries(): readonly Entry[] {
    return this.openTurnId === null ? [] : this.memory(this.openTurnId).entries;
  }

  /** The state values of all live machines. */
  values() {
    return this.actors.values(this.openTurnId);
  }

  turn(turnId: string): TurnState | undefined {
    return this.actors.turn(turnId);
  }

  call(turnId: string, callId: string): CallState | undefined {
    return this.actors.call(turnId, callId);
  }

  isQueuedToSpawn(callId: string): boolean {
    const { openTurnId } = this;
    const call = openTurnId === null ? undefined : this.call(openTurnId, callId);
    if (!call) return false;
    const tool = this.definition.tools.get(call.name);
    return tool?.kind === "subagent" && isQueuedToSpawn(call, this.turnEntries, spawnLimitOf(tool));
  }

  memory(turnId: string): TurnMemory {
    return this.conversation.memory(turnId);
  }

  traceOf(turnId: string, callId?: string): TraceHeaders | undefined {
    const known = traceOf(this.identity.rootAgentId, callId === undefined ? [turnId] : [callId, turnId]);
    const [first] = this.memory(turnId).entries;
    return known ?? (first?.type === "turn.started" ? first.trace : undefined);
  }

  /** The part of the conversation that the model may see. */
  history(): readonly Message[] {
    return this.conversation.viewOf(this.actors.context.compaction);
  }

  turnStart(): number | undefined {
    return this.conversation.turnStartOf(this.actors.context.compaction);
  }

  /** The whole conversation. */
  archive(): readonly Message[] {
    return this.conversation.archive;
  }

  hasExcerpts(): boolean {
    return this.conversation.hasExcerpts;
  }

  artifact(artifactId: string): Promise<Artifact | undefined> {
    const { tenant, agentId } = this.identity;
    return this.#lent.stores.artifact({ tenant, agentId }, artifactId);
  }

  message(messageId: string): Message | undefined {
    return this.conversation.message(messageId);
  }
}

/** The ports through which a live agent uses its process. */
export interface ActivationPorts<Live extends Host = Host> {
  readonly clock: Clock;
  readonly prices: PriceBook;
  readonly stores: Stores;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly queues: Queues;
  readonly processId: string;
  /** Notifies agents that were posted to. */
  notify(agentIds: readonly string[]): void;
  readonly committer: Committer;
  random(): number;
  readonly inspect: ((agentId: string, event: InspectionEvent) => void) | undefined;
  slots(toolName: string, limit: number): Slots;
  auth(turnId: string): Auth | undefined;
  redactorOf(turnId: string): (text: string) => string;
  resolveAuth(identity: AgentIdentity, turnId: string, actorId: string | null): Promise<Auth | undefined>;
  onCommitted(activation: Live, outcome: Committed): void;
  viewersOf(identity: AgentIdentity): Viewers;
  childResult(activation: Live, childId: string): SpawnedChild["result"];
  readonly inFlight: CallsInFlight;
  onLost(activation: Live): void;
  /** Called when the stores refuse its batch for now. */
  onRefused(activation: Live, error: StoreUnavailableError): void;
  /** Called when its batch can never be stored; this process does not recover the agent. */
  onFailed(agentId: string, cause: unknown): void;
  /** Called when an effect has ended while its state goes on. */
  onEffectOver(activation: Live): void;
  /** The live activation of this agent: itself, or the one that replaced it in this process. */
  successor(activation: Live): Promise<Host>;
}
