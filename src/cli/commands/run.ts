import { resolve } from "node:path";
import { DEFAULT_TENANT } from "../../state/index.ts";
import { type BudgetOptions, budgetOf } from "../budget-options.ts";
import type { CliContext } from "../cli-context.ts";
import type { ExitCode } from "../exit-codes.ts";
import { chosenFirst, loadAgentFile } from "../job/agent-file.ts";
import { jobOfFile } from "../job/file-job.ts";
import { openStore, withStore } from "../job/open-store.ts";
import { freshId } from "../job/roots.ts";
import type { JobOptions } from "../job/job.ts";
import { runJob } from "../job/run-job.ts";

export interface RunOptions extends JobOptions, BudgetOptions {
  readonly store: string;
  readonly agentId?: string | undefined;
  /** Name of the definition, where the file exports several. */
  readonly agent?: string | undefined;
}

/** One turn of an agent that a file defines: a new agent, or the next turn of the one that is named. */
export async function runCommand(
  context: CliContext,
  file: string,
  input: string,
  options: RunOptions,
): Promise<ExitCode> {
  const agents = chosenFirst(await loadAgentFile(file, context.directory), options.agent, file);
  return await withStore(openStore(options.store), async (stores) => {
    const rootAgentId = options.agentId ?? (await freshId(stores, "run"));
    const known = await stores.readAgent({ tenant: DEFAULT_TENANT, agentId: rootAgentId });
    const { store: storePath } = options;
    const place = { rootAgentId, storePath, isResumed: false };
    const job = jobOfFile(context, { file: resolve(context.directory, file), agents, input }, place);
    const metadata = known?.metadata ?? job.metadata;
    return await runJob(context, stores, { ...job, metadata, budget: budgetOf(options) }, options);
  });
}
