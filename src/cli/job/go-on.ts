import type { Budget } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { AgentRecord, EntryOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import type { ExitCode } from "../exit-codes.ts";
import { showEnded } from "./conclude.ts";
import { endedPlace } from "./ended-place.ts";
import type { Job, JobOptions } from "./job.ts";
import { isUnfinished } from "./roots.ts";
import { runJob } from "./run-job.ts";
import type { StorePlace } from "./store-place.ts";
import { readStory } from "./story.ts";
import { lastEnd } from "./way-on.ts";

/** A root agent that somebody wants to go on, and with what. */
export interface GoingOn {
  readonly root: AgentRecord;
  readonly store: StorePlace;
  /** Asked for only when there is something to run. */
  readonly job: () => Job | Promise<Job>;
  /** For a turn of its own, after one that a limit has stopped. */
  readonly budget: Budget | undefined;
}

/**
 * Carries on what is unfinished; with a budget goes on from where a limit stopped the last turn; else shows how it ended.
 * Throws `InvalidInputError` where a budget has no turn that it could be for.
 */
export async function goOn(
  context: CliContext,
  stores: Stores,
  { root, store, job, budget }: GoingOn,
  options: JobOptions,
): Promise<ExitCode> {
  const { agentId } = root;
  if (isUnfinished(root)) {
    assertNoOpenTurn(root, budget);
    return await runJob(context, stores, { ...(await job()), budget }, options);
  }
  if (budget !== undefined) {
    assertStopped(agentId, lastEnd((await readStory(stores, agentId)).rows, agentId));
    return await runJob(context, stores, { ...(await job()), input: null, budget }, options);
  }
  return await showEnded(context, stores, endedPlace(context, root, store), options);
}

/** The limits of a turn are fixed when it begins. */
function assertNoOpenTurn({ agentId, openTurnId }: AgentRecord, budget: Budget | undefined): void {
  if (openTurnId === null || budget === undefined) return;
  throw new InvalidInputError(
    `turn ${openTurnId} is open and keeps the limits it began with; resume ${agentId} without a budget, or abort it first and then go on with one`,
  );
}

function assertStopped(agentId: string, end: EntryOf<"turn.ended"> | undefined): void {
  if (end === undefined || end.outcome !== "completed") return;
  throw new InvalidInputError(
    `the last turn of ${agentId} is completed, there is nothing to go on with; tell it something with \`run … --agent-id ${agentId}\``,
  );
}
