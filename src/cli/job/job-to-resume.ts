import type { AgentDefinition } from "../../agents/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { AgentRecord } from "../../state/index.ts";
import { jobOfQuestion } from "../ask/ask-job.ts";
import { askJobOf } from "../ask/job.ts";
import type { CliContext } from "../cli-context.ts";
import { loadAgentFile } from "./agent-file.ts";
import { fileJobOf, jobOfFile } from "./file-job.ts";
import type { Job } from "./job.ts";
import type { StorePlace } from "./store-place.ts";

export interface AgentsOption {
  /** File that exports the definitions, for agents that were started from code or whose file has moved. */
  readonly agents?: string | undefined;
}

/** A root agent of the store as a job that can be carried on. Throws `InvalidInputError` when its definition is nowhere. */
export async function jobToResume(
  context: CliContext,
  root: AgentRecord,
  store: StorePlace,
  { agents: given }: AgentsOption,
): Promise<Job> {
  const { agentId: rootAgentId, metadata, definition } = root;
  const place = { rootAgentId, store, isResumed: true };
  const question = askJobOf(metadata);
  if (question !== undefined) return jobOfQuestion(context, question, place);
  const work = fileJobOf(metadata);
  const file = given ?? work?.file;
  if (file === undefined) {
    throw new InvalidInputError(
      `${rootAgentId} was started by a program, not by this command; name the file that exports its definition "${definition.name}" with --agents`,
    );
  }
  const { agents, mayDecide } = await loadAgentFile(file, context.directory);
  const input = work?.input ?? "";
  const job = jobOfFile(context, { file, agents: named(agents, definition.name, file), input, mayDecide }, place);
  return { ...job, metadata };
}

function named(
  agents: readonly AgentDefinition[],
  name: string,
  file: string,
): readonly [AgentDefinition, ...AgentDefinition[]] {
  const wanted = agents.find((agent) => agent.name === name);
  if (wanted !== undefined) return [wanted, ...agents.filter((agent) => agent !== wanted)];
  throw new InvalidInputError(`${file} exports no agent "${name}"; give the file that does with --agents`);
}
