import type { AgentDefinition } from "../../agents/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { askTeam, folderAt } from "../../demo/index.ts";
import { newAskJob } from "../ask/job.ts";
import type { CliContext } from "../cli-context.ts";
import { type AgentFile, loadAgentFile } from "../job/agent-file.ts";

export interface DefinitionOptions {
  /** Agent file. */
  readonly agents?: string | undefined;
  /** Whether questions of `ask` are worked on, those about one folder with one model. */
  readonly ask?: boolean | undefined;
  readonly files?: string | undefined;
  readonly model?: string | undefined;
  readonly maxReaders?: number | undefined;
}

/** What a worker knows: the definitions of a file, the team of `ask`, or both. Throws `InvalidInputError` for neither. */
export async function definitionsOf(
  { directory, environment }: Pick<CliContext, "directory" | "environment">,
  { agents: file, ask, files, model, maxReaders }: DefinitionOptions,
): Promise<{ readonly agents: readonly AgentDefinition[]; readonly mayDecide: AgentFile["mayDecide"] }> {
  if (file === undefined && ask !== true) {
    throw new InvalidInputError("a worker has to know agents: give --agents FILE, or --ask for questions of `ask`");
  }
  const strange =
    ask === true ? [] : Object.entries({ "--files": files, "--model": model, "--max-readers": maxReaders });
  const [misplaced] = strange.filter(([, value]) => value !== undefined);
  if (misplaced !== undefined)
    throw new InvalidInputError(`${misplaced[0]} is for --ask; give that too, or leave it out`);
  const known = file === undefined ? undefined : await loadAgentFile(file, directory);
  const agents: AgentDefinition[] = [...(known?.agents ?? [])];
  if (ask === true) {
    const folder = files === undefined ? null : folderAt(files, directory);
    const job = newAskJob({ question: "", files: folder, model, maxReaders }, environment);
    agents.push(askTeam(job, environment, "anywhere"));
  }
  return { agents, mayDecide: known?.mayDecide };
}
