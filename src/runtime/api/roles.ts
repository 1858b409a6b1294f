import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { localQueues, type Queues, type ToolQueueOptions } from "../../queues/index.ts";
import type { Stores } from "../../stores/index.ts";

/**
 * The part of a process in the work. `all`: it runs the work of its own handles, and takes part in that of others.
 * `client`: it runs neither turns nor tools; its commands go to the stores, and a worker is woken. `worker`: it works
 * on woken agents and on the tools' queues.
 */
export type Role = "all" | "client" | "worker";

export const DEFAULT_AGENTS_AT_WORK = 50;

export interface WorkSettings {
  /** Most woken agents at work at a time in this process, not counting those that only wait. Default 50. */
  readonly agents?: number | undefined;
  /**
   * The tools' queues that are worked on here, by name; `{}`: none. Default: all that the given definitions name, one
   * job of each at a time.
   */
  readonly queues?: Readonly<Record<string, ToolQueueOptions>> | undefined;
}

/**
 * When an agent leaves memory that has nothing to do, or whose turn only waits. About a kilobyte of it stays, and the
 * process keeps its lease; the next command activates it again from the stores. Agents with `autoSave: false` stay in
 * memory.
 */
export interface IdleOptions {
  /** Milliseconds after its last work. Default 5,000. */
  readonly keptMs?: number | undefined;
  /** Most idle agents in memory; above it those leave first that have been idle for longest. Default 1,000. */
  readonly agents?: number | undefined;
}

/** `IdleOptions` with all defaults filled in. */
export interface IdleSettings {
  /** Milliseconds after its last work. */
  readonly keptMs: number;
  /** Most idle agents in memory. */
  readonly agents: number;
}

export const DEFAULT_IDLE: IdleSettings = { keptMs: 5_000, agents: 1_000 };

/** The settings of the work that a role does: none for a `client`. */
export type WorkOf<Chosen extends Role> = Chosen extends "client" ? undefined : WorkSettings;

/** Whose unattended turns a process carries on: those of the whole store, or of the trees that it works on. */
export type Recovers = "all" | "own";

/** A runtime's role in its deployment, with all defaults filled in. */
export interface Part {
  readonly role: Role;
  readonly queues: Queues;
  /** Whether other processes may take what is put into the queues. */
  readonly isDistributed: boolean;
  /** Whether it looks for agents that no process runs, and for which. */
  readonly looksAfterOthers: boolean;
  readonly recovers: Recovers;
  readonly agents: number;
  readonly idle: IdleSettings;
  readonly toolQueues: Readonly<Record<string, ToolQueueOptions>>;
}

interface PartSource {
  readonly role?: Role | undefined;
  readonly work?: WorkSettings | undefined;
  readonly recovers?: Recovers | undefined;
  readonly idle?: IdleOptions | undefined;
  readonly stores?: Stores | undefined;
  readonly queues?: Queues | undefined;
  readonly clock: Clock;
  readonly random?: (() => number) | undefined;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
}

/** Throws `InvalidInputError` for an unknown role, or for one that lacks what it needs. */
export function partOf(source: PartSource): Part {
  const { role = "all", work = {}, clock, random, definitions } = source;
  const known: readonly unknown[] = ["all", "client", "worker"];
  if (!known.includes(role)) {
    throw new InvalidInputError(`role is ${JSON.stringify(role)}; it is "all", "client" or "worker"`);
  }
  if (role !== "all") assertShared(role, source);
  if (role === "client" && source.work !== undefined) {
    throw new InvalidInputError('role "client" does no work; leave { work } out, or take the role "all" or "worker"');
  }
  const { agents = DEFAULT_AGENTS_AT_WORK } = work;
  if (!Number.isSafeInteger(agents) || agents < 1 || agents > 100_000) {
    throw new InvalidInputError(`work.agents is ${String(agents)}; it takes a whole number from 1 to 100000`);
  }
  const queues = source.queues ?? localQueues({ clock, random });
  const toolQueues = role === "client" ? {} : (work.queues ?? queuesOf(definitions));
  const isDistributed = queues.kind !== "local";
  // Stores that were not given belong to this runtime alone.
  const looksAfterOthers = role !== "client" && (isDistributed || source.stores !== undefined);
  const recovers = isDistributed ? "all" : (source.recovers ?? "all");
  const { keptMs = DEFAULT_IDLE.keptMs, agents: kept = DEFAULT_IDLE.agents } = source.idle ?? {};
  const idle = { keptMs, agents: kept };
  return { role, queues, isDistributed, looksAfterOthers, recovers, agents, idle, toolQueues };
}

function assertShared(role: Role, { stores, queues }: PartSource): void {
  if (stores === undefined) {
    throw new InvalidInputError(`role "${role}" takes stores that other processes share: give { stores }`);
  }
  if (queues === undefined || queues.kind === "local") {
    throw new InvalidInputError(
      `role "${role}" takes queues that other processes share: give { queues: bullmqQueues({ connection }) }`,
    );
  }
}

/** Every queue that a tool of these definitions names. */
function queuesOf(definitions: ReadonlyMap<string, AgentDefinition>): Record<string, ToolQueueOptions> {
  const names = [...definitions.values()].flatMap(({ tools }) => tools.tools.flatMap(queueOfTool));
  return Object.fromEntries(names.map((name) => [name, {}]));
}

function queueOfTool(tool: object): string[] {
  return "queue" in tool && typeof tool.queue === "string" ? [tool.queue] : [];
}
