import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { localQueues, type Queues, type ToolQueueOptions } from "../../queues/index.ts";
import type { Stores } from "../../stores/index.ts";

/**
 * The role of a process in a deployment. `all`: it runs the turns of its own handles, and shares those of other processes.
 * `client`: it runs neither turns nor tools; its commands go to the stores, and a worker is woken. `worker`: it runs woken agents
 * and the jobs of the tools' queues.
 */
export type Role = "all" | "client" | "worker";

export const DEFAULT_AGENTS_AT_WORK = 50;

export interface WorkSettings {
  /** Maximum number of woken agents that run at a time in this process, not counting those that only wait. Default 50. */
  readonly agents?: number | undefined;
  /**
   * The tools' queues that this process works on, by name; `{}` for none. Default: all queues named by the given definitions, one
   * job of each at a time.
   */
  readonly queues?: Readonly<Record<string, ToolQueueOptions>> | undefined;
}

/**
 * When an agent that is idle, or whose turn only waits, is removed from memory. About a kilobyte of it stays, and the process
 * keeps its lease; the next command activates it again from the stores. Agents with `autoSave: false` stay in memory.
 */
export interface IdleOptions {
  /** Milliseconds after the agent's last work. Default 5,000. */
  readonly keptMs?: number | undefined;
  /** Maximum number of idle agents in memory; above it the agents idle for longest are removed first. Default 1,000. */
  readonly agents?: number | undefined;
}

/** `IdleOptions` with all defaults filled in. */
export interface IdleSettings {
  /** Milliseconds after the agent's last work. */
  readonly keptMs: number;
  /** Maximum number of idle agents in memory. */
  readonly agents: number;
}

export const DEFAULT_IDLE: IdleSettings = { keptMs: 5_000, agents: 1_000 };

/** The work settings of a role; none for a `client`. */
export type WorkOf<Chosen extends Role> = Chosen extends "client" ? undefined : WorkSettings;

/** Whose unattended turns a process continues: those of the whole store, or only those of the trees that it works on. */
export type Recovers = "all" | "own";

/** A runtime's role in its deployment, with all defaults filled in. */
export interface Part {
  readonly role: Role;
  readonly queues: Queues;
  /** Whether other processes can take jobs from the queues. */
  readonly isDistributed: boolean;
  /** Whether it searches for agents that no process runs, and for which of them. */
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

/** Throws `InvalidInputError` for an unknown role, or if the role's stores or queues are missing. */
export function partOf(source: PartSource): Part {
  const { role = "all", work = {}, clock, random, definitions } = source;
  const known: readonly unknown[] = ["all", "client", "worker"];
  if (!known.includes(role)) {
    throw new InvalidInputError(`role is ${JSON.stringify(role)}; expected "all", "client" or "worker"`);
  }
  if (role !== "all") assertShared(role, source);
  if (role === "client" && source.work !== undefined) {
    throw new InvalidInputError('role "client" does no work; remove { work }, or use the role "all" or "worker"');
  }
  const { agents = DEFAULT_AGENTS_AT_WORK } = work;
  if (!Number.isSafeInteger(agents) || agents < 1 || agents > 100_000) {
    throw new InvalidInputError(`work.agents is ${String(agents)}; expected a whole number from 1 to 100000`);
  }
  const queues = source.queues ?? localQueues({ clock, random });
  const toolQueues = role === "client" ? {} : (work.queues ?? queuesOf(definitions));
  const isDistributed = queues.kind !== "local";
  // Without a `stores` option the stores belong to this runtime alone.
  const looksAfterOthers = role !== "client" && (isDistributed || source.stores !== undefined);
  const recovers = isDistributed ? "all" : (source.recovers ?? "all");
  const { keptMs = DEFAULT_IDLE.keptMs, agents: kept = DEFAULT_IDLE.agents } = source.idle ?? {};
  const idle = { keptMs, agents: kept };
  return { role, queues, isDistributed, looksAfterOthers, recovers, agents, idle, toolQueues };
}

function assertShared(role: Role, { stores, queues }: PartSource): void {
  if (stores === undefined) {
    throw new InvalidInputError(`role "${role}" requires stores that other processes share: set { stores }`);
  }
  if (queues === undefined || queues.kind === "local") {
    throw new InvalidInputError(
      `role "${role}" requires queues that other processes share: set { queues: bullmqQueues({ connection }) }`,
    );
  }
}

/** Every queue named by a tool of these definitions. */
function queuesOf(definitions: ReadonlyMap<string, AgentDefinition>): Record<string, ToolQueueOptions> {
  const names = [...definitions.values()].flatMap(({ tools }) => tools.tools.flatMap(queueOfTool));
  return Object.fromEntries(names.map((name) => [name, {}]));
}

function queueOfTool(tool: object): string[] {
  return "queue" in tool && typeof tool.queue === "string" ? [tool.queue] : [];
}
