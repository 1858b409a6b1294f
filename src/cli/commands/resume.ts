import type { Budget } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type AgentRecord, DEFAULT_TENANT, type EntryOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type BudgetOptions, budgetOf } from "../budget-options.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { failureOf } from "../failure.ts";
import { endedPlace } from "../job/ended-place.ts";
import { jobToResume, type ResumePlace } from "../job/job-to-resume.ts";
import { openExistingStore, withStore } from "../job/open-store.ts";
import { ownerOf } from "../job/owner.ts";
import { findAgent, isUnfinished } from "../job/roots.ts";
import { showEnded } from "../job/conclude.ts";
import type { JobOptions } from "../job/job.ts";
import { runJob } from "../job/run-job.ts";
import { readStory } from "../job/story.ts";
import { lastEnd } from "../job/way-on.ts";
import { allAgents } from "../job/all-agents.ts";

export type ResumeOptions = JobOptions & ResumePlace & BudgetOptions;

/** Carries on one agent, or one after the other all that are unfinished and that nobody runs. */
export async function resumeCommand(
  context: CliContext,
  text: string | undefined,
  options: ResumeOptions,
): Promise<ExitCode> {
  if (text === undefined && budgetOf(options) !== undefined) {
    throw new InvalidInputError("a budget is for one turn: name the agent that it is for");
  }
  return await withStore(openExistingStore(options.store), async (stores) =>
    text === undefined ? await resumeAll(context, stores, options) : await resumeOne(context, stores, text, options),
  );
}

async function resumeOne(context: CliContext, stores: Stores, text: string, options: ResumeOptions): Promise<ExitCode> {
  const { rootAgentId } = await findAgent(stores, text);
  const root = await findAgent(stores, rootAgentId);
  const budget = budgetOf(options);
  if (isUnfinished(root)) {
    assertNoOpenTurn(root, budget);
    return await runJob(context, stores, { ...(await jobToResume(context, root, options)), budget }, options);
  }
  if (budget !== undefined) {
    const end = lastEnd((await readStory(stores, rootAgentId)).rows, rootAgentId);
    assertStopped(rootAgentId, end);
    const job = { ...(await jobToResume(context, root, options)), input: null, budget };
    return await runJob(context, stores, job, options);
  }
  return await showEnded(context, stores, endedPlace(context, root, options.store), options);
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

async function resumeAll(context: CliContext, stores: Stores, options: ResumeOptions): Promise<ExitCode> {
  const roots = await allAgents(stores, { tenant: DEFAULT_TENANT, rootsOnly: true });
  const unfinished = roots.filter(isUnfinished);
  if (unfinished.length === 0) context.note(`Nothing in ${options.store} is unfinished.`);
  let exitCode: ExitCode = exitCodes.success;
  for (const root of unfinished) {
    const owner = await ownerOf(stores, { tenant: DEFAULT_TENANT, agentId: root.agentId });
    if (owner?.isAlive === true) {
      context.note(`${root.agentId} is left alone: process ${owner.pid} runs it.`);
      continue;
    }
    const code = await resumeQuietly(context, stores, root, options);
    if (code === exitCodes.interrupted) return code;
    if (exitCode === exitCodes.success) exitCode = code;
  }
  return exitCode;
}

/** One that cannot be carried on does not keep the others from it. */
async function resumeQuietly(
  context: CliContext,
  stores: Stores,
  root: AgentRecord,
  options: ResumeOptions,
): Promise<ExitCode> {
  try {
    return await runJob(context, stores, await jobToResume(context, root, options), options);
  } catch (error) {
    const failure = failureOf(error, context.environment);
    context.note(`${root.agentId}: ${failure.text}`);
    return failure.exitCode;
  }
}
