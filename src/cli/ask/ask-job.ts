import { type AgentRecord, DEFAULT_TENANT } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import { commandLine } from "../invocation.ts";
import { storeWords } from "../job/open-store.ts";
import type { Job } from "../job/job.ts";
import { isUnfinished } from "../job/roots.ts";
import { allAgents } from "../job/all-agents.ts";
import { oneLine } from "../view/text-width.ts";
import { documentsIn } from "./documents.ts";
import { type AskJob, askJobOf, offlineName, withUsableModel } from "./job.ts";
import { askTeam } from "./team.ts";

export interface Asked {
  readonly record: AgentRecord;
  readonly job: AskJob;
}

/** The questions of a store, newest first. */
export async function askedIn(stores: Stores): Promise<Asked[]> {
  const roots = await allAgents(stores, { tenant: DEFAULT_TENANT, rootsOnly: true });
  return roots
    .flatMap((record) => {
      const job = askJobOf(record.metadata);
      return job === undefined ? [] : [{ record, job }];
    })
    .sort((left, right) => right.record.createdAt - left.record.createdAt);
}

/** What `--resume` takes up: the newest question that is not finished, else the newest of all. */
export function toResume(asked: readonly Asked[]): Asked | undefined {
  return asked.find(({ record }) => isUnfinished(record)) ?? asked[0];
}

export interface JobPlace {
  readonly rootAgentId: string;
  readonly storePath: string;
  readonly isResumed: boolean;
}

/** A question as something that can be run. Throws `InvalidInputError` when its model cannot be used. */
export function jobOfQuestion({ environment, invocation }: CliContext, asked: AskJob, place: JobPlace): Job {
  const { rootAgentId, storePath, isResumed } = place;
  const job = withUsableModel(asked, environment);
  const store = storeWords(storePath);
  const model = job.model === offlineName ? "rule-based offline engine, no language model" : job.model;
  return {
    agents: [askTeam(job, environment)],
    rootAgentId,
    metadata: { ...job },
    input: job.question,
    isResumed,
    header: [
      `Question: ${oneLine(job.question)}`,
      `On ${documentsIn(job.files).title}, by ${model}; kept in ${storePath} as ${rootAgentId}`,
    ],
    resumeCommand: commandLine(invocation, "ask", ["--resume", ...store]),
    showCommand: commandLine(invocation, "show", [rootAgentId, ...store]),
    storeWords: store,
  };
}
