import type { InspectionEvent } from "xstate";
import type { Host, Viewers } from "../../actors/index.ts";
import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock } from "../../base/index.ts";
import type { StoreUnavailableError } from "../../errors/index.ts";
import type { PriceBook } from "../../model/index.ts";
import type { Queues } from "../../queues/index.ts";
import type { AgentIdentity } from "../../state/index.ts";
import type { Committed, Stores } from "../../stores/index.ts";
import type { Auth, Slots, SpawnedChild } from "../../tools/index.ts";
import type { Committer } from "./committer.ts";
import type { World } from "./world.ts";

/** What a live agent needs of the process it lives in. */
export interface Surroundings<Live extends Host = Host> {
  readonly clock: Clock;
  readonly prices: PriceBook;
  readonly stores: Stores;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly queues: Queues;
  readonly processId: string;
  /** Somebody posted to these agents. */
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
  readonly world: World;
  onLost(activation: Live): void;
  /** The stores do not take now what it has done. */
  onRefused(activation: Live, error: StoreUnavailableError): void;
  /** What an agent has done can never be stored, and nobody here carries it on. */
  onFailed(agentId: string, cause: unknown): void;
  /** An effect has ended, and its state goes on. */
  onEffectOver(activation: Live): void;
  /** The live activation of this agent: itself, or the one that took its place in this process. */
  successor(activation: Live): Promise<Host>;
}
