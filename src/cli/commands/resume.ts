import { InvalidInputError, StoreUnavailableError } from "../../errors/index.ts";
import { type AgentRecord, DEFAULT_TENANT } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type BudgetOptions, budgetOf } from "../budget-options.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes, failureOf } from "../failure.ts";
import { ownerOf, findAgent, isUnfinished, allAgents } from "../job/find-agent.ts";
import { type AgentsOption, jobToResume, goOn } from "../job/go-on.ts";
import type { JobOptions } from "../job/job.ts";
import { runJob } from "../job/run-job.ts";
import { type StoreOptions, type StoreLocation, storeLocation, withStore } from "../job/store-location.ts";

export type ResumeOptions = JobOptions & StoreOptions & AgentsOption & BudgetOptions;

/** Continues one agent, or one after the other all unfinished agents without a process. */
export async function resumeCommand(
  context: CliContext,
  text: string | undefined,
  options: ResumeOptions,
): Promise<ExitCode> {
  if (text === undefined && budgetOf(options) !== undefined) {
    throw new InvalidInputError("a budget applies to one turn: name the agent");
  }
  const store = storeLocation(context, options);
  return await withStore(store, "openExisting", async (stores) => {
    if (text === undefined) return await resumeAll(context, stores, store, options);
    const { rootAgentId } = await findAgent(stores, text);
    const root = await findAgent(stores, rootAgentId);
    const job = () => jobToResume(context, stores, { root, store }, options);
    return await goOn(context, stores, { root, store, job, budget: budgetOf(options) }, options);
  });
}

async function resumeAll(
  context: CliContext,
  stores: Stores,
  store: StoreLocation,
  options: ResumeOptions,
): Promise<ExitCode> {
  const roots = await allAgents(stores, { tenant: DEFAULT_TENANT, rootsOnly: true });
  const unfinished = roots.filter(isUnfinished);
  if (unfinished.length === 0) context.note(`Nothing in ${store.name} is unfinished.`);
  let exitCode: ExitCode = exitCodes.success;
  for (const root of unfinished) {
    const owner = await ownerOf(stores, { tenant: DEFAULT_TENANT, agentId: root.agentId });
    if (owner?.isAlive === true) {
      context.note(`${root.agentId} is skipped: process ${owner.pid} runs it.`);
      continue;
    }
    const code = await resumeQuietly(context, root, async () => {
      const job = await jobToResume(context, stores, { root, store }, options);
      return await runJob(context, stores, job, options);
    });
    if (code === exitCodes.interrupted) return code;
    if (exitCode === exitCodes.success) exitCode = code;
  }
  return exitCode;
}

/** Reports an agent that cannot be continued, so that the others still are. */
async function resumeQuietly(
  context: CliContext,
  { agentId }: AgentRecord,
  run: () => Promise<ExitCode>,
): Promise<ExitCode> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof StoreUnavailableError) throw error;
    const failure = failureOf(error, context.environment);
    context.note(`${agentId}: ${failure.text}`);
    return failure.exitCode;
  }
}
