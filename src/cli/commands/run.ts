import { resolve } from "node:path";
import { DEFAULT_TENANT } from "../../state/index.ts";
import { type BudgetOptions, budgetOf } from "../budget-options.ts";
import type { CliContext } from "../cli-context.ts";
import type { ExitCode } from "../failure.ts";
import { readArgument } from "../inline/standard-input.ts";
import { chosenFirst, loadAgentFile } from "../job/agent-file.ts";
import { freshId } from "../job/find-agent.ts";
import { jobOfFile, type JobOptions } from "../job/job.ts";
import { runJob } from "../job/run-job.ts";
import { assertGetsTools, pathOf, withMcpTools } from "../mcp/mcp-tools.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";

export interface RunOptions extends JobOptions, BudgetOptions, StoreOptions {
  readonly agentId?: string | undefined;
  /** Name of the definition, if the file exports several. */
  readonly agent?: string | undefined;
  /** File with MCP servers, whose tools the agent gets. */
  readonly mcp?: string | undefined;
}

/** Runs one turn of an agent from a file: a new agent, or the named one. */
export async function runCommand(
  context: CliContext,
  file: string,
  given: string,
  options: RunOptions,
): Promise<ExitCode> {
  const store = storeLocation(context, options);
  const { agentId, agent: name, mcp } = options;
  const agentFile = await withMcpTools(context, await loadAgentFile(file, context.directory), mcp);
  // Checks the name before a store is created.
  if (agentId === undefined) chosenFirst(agentFile, file, { name });
  const input = await readArgument(context, given);
  return await withStore(store, "open", async (stores) => {
    const rootAgentId = agentId ?? (await freshId(stores, "run"));
    const known = await stores.readAgent({ tenant: DEFAULT_TENANT, agentId: rootAgentId });
    const agents = chosenFirst(agentFile, file, { name, known });
    assertGetsTools(agentFile, agents[0], mcp);
    const { mayDecide } = agentFile;
    const place = { rootAgentId, store, isResumed: false };
    const work = { file: resolve(context.directory, file), agents, input, mayDecide, mcp: pathOf(context, mcp) };
    const job = jobOfFile(context, work, place);
    const metadata = known?.metadata ?? job.metadata;
    return await runJob(context, stores, { ...job, metadata, budget: budgetOf(options) }, options);
  });
}
