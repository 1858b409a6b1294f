import type { AgentDefinition } from "../agents/index.ts";
import { InvariantError } from "../errors/index.ts";
import type { DeadCause, Job, JobOutcome, JobRun, Queues, ToolJob } from "../queues/index.ts";
import type { AgentKey } from "../state/index.ts";
import type { Stores } from "../stores/index.ts";
import type { AuthBook } from "./auth-book.ts";
import type { LiveAgents } from "./live-agents.ts";
import type { LiveDesk } from "./live-desk.ts";

/** What the run of a queued tool needs of the process it runs in. */
export interface ToolJobPlace {
  readonly stores: Stores;
  readonly queues: Queues;
  readonly tenant: string;
  readonly processId: string;
  readonly clock: { now(): number; elapsed(): number };
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly auth: AuthBook;
  readonly live: LiveAgents;
  readonly liveDesk: LiveDesk;
  keyOf(agentId: string): AgentKey;
  /** Somebody posted to these agents. */
  notify(agentIds: readonly string[]): void;
}

/** Runs the body of a queued tool, and posts what came of it. */
export async function runToolJob(_place: ToolJobPlace, job: ToolJob, _run: JobRun): Promise<JobOutcome> {
  throw new InvariantError(`a job came for call ${job.callId}, and no tool can be queued yet`);
}

/** Tells the agent that a job of its call was given up. */
export async function onDeadJob(_place: ToolJobPlace, job: Job, cause: DeadCause): Promise<void> {
  throw new InvariantError(`a ${job.kind} job was given up (${cause.code}), and no tool can be queued yet`);
}
