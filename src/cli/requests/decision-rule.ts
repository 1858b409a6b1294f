import { resolve } from "node:path";
import { InvalidInputError } from "../../errors/index.ts";
import type { RuntimeOptions } from "../../runtime/index.ts";
import type { AgentRecord, AgentRequest } from "../../state/index.ts";
import type { CliContext } from "../cli-context.ts";
import { loadAgentFile } from "../job/agent-file.ts";
import { fileJobOf } from "../job/file-job.ts";
import type { Job } from "../job/job.ts";
import type { AgentsOption } from "../job/job-to-resume.ts";

/** What a person wants to decide. */
export interface Decidable {
  readonly request: AgentRequest;
  readonly root: AgentRecord;
  /** What the agent is carried on with, where that is known already. */
  readonly job: Job | undefined;
}

/**
 * Who may decide a request: the rule of the agent file, from `--agents` or, where the store knows it, the one that the agent
 * was started with. Throws `InvalidInputError` where whoever opened the request had a rule, and none is found: without it
 * nobody decides.
 */
export async function ruleFor(
  context: CliContext,
  { request, root, job }: Decidable,
  { agents }: AgentsOption,
): Promise<RuntimeOptions["mayDecide"]> {
  const isGuarded = request.isGuarded === true;
  const file = agents ?? (isGuarded ? fileJobOf(root.metadata)?.file : undefined);
  const rule =
    job?.mayDecide ?? (file === undefined ? undefined : (await loadAgentFile(file, context.directory)).mayDecide);
  if (rule !== undefined || !isGuarded) return rule;
  const where = file === undefined ? "" : `; ${resolve(context.directory, file)} exports none`;
  throw new InvalidInputError(
    `there is a rule on who may decide request "${request.requestId}"${where}: name the file that exports it as "mayDecide" with --agents FILE, or decide in its program`,
  );
}
