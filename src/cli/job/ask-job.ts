import { withAddedTools } from "../../agents/index.ts";
import type { AgentRecord, JsonObject } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import { documentsIn } from "../documents.ts";
import { toolsOfServers } from "../mcp/mcp-tools.ts";
import { oneLine } from "../view/terminal-text.ts";
import { isUnfinished, rootsByAge } from "./find-agent.ts";
import { teamOf } from "./ask-team.ts";
import { type Job, type AskJob, askJobOf, defaultMaxReaders, offlineName, withUsableModel } from "./job.ts";
import type { StoreLocation } from "./store-location.ts";

interface Asked {
  readonly record: AgentRecord;
  readonly asked: AskJob;
}

/** The question for `--resume`: the newest unfinished one, else the newest of all. */
export async function questionToResume(stores: Stores): Promise<Asked | undefined> {
  let newest: Asked | undefined;
  for await (const record of rootsByAge(stores)) {
    const asked = askJobOf(record.metadata);
    if (asked === undefined) continue;
    if (isUnfinished(record)) return { record, asked };
    newest ??= { record, asked };
  }
  return newest;
}

interface AskJobContext {
  readonly rootAgentId: string;
  readonly store: StoreLocation;
  readonly isResumed: boolean;
  /** Speed of the offline engine. Default: unlimited. */
  readonly tokensPerSecond?: number | undefined;
}

/** A question as it is stored: without fields that are not set. */
function metadataOf({ mcp, ...job }: AskJob): JsonObject {
  return { ...job, ...(mcp === undefined ? {} : { mcp }) };
}

/** The job with the tools of its MCP servers for the lead; readers keep their own. */
export async function withLeadTools(context: CliContext, job: Job, { mcp }: AskJob): Promise<Job> {
  if (mcp === undefined) return job;
  const [lead, ...others] = job.agents;
  const tools = await toolsOfServers(context, mcp);
  return { ...job, agents: [withAddedTools(lead, tools), ...others] };
}

/** Converts a question to a job. Throws `InvalidInputError` if its model is unusable. */
export function jobOfQuestion(
  { environment, invocation }: Pick<CliContext, "environment" | "invocation">,
  asked: AskJob,
  place: AskJobContext,
): Job {
  const { rootAgentId, store, isResumed, tokensPerSecond } = place;
  const job = withUsableModel(asked, environment);
  const model = job.model === offlineName ? "rule-based offline engine, no language model" : job.model;
  return {
    agents: [teamOf(job, { reach: reachOf(store), tokensPerSecond })],
    workerWords: workerWordsOf(job),
    rootAgentId,
    metadata: metadataOf(job),
    input: job.question,
    isResumed,
    header: [
      `Question: ${oneLine(job.question)}`,
      `On ${documentsIn(job.files).title}, by ${model}; kept in ${store.name} as ${rootAgentId}`,
    ],
    resumeCommand: commandLine(invocation, "ask", ["--resume", ...store.words]),
    showCommand: commandLine(invocation, "show", [rootAgentId, ...store.words]),
    store,
  };
}

/** Workers of a store with queues may run the team. */
export function reachOf({ openQueues }: Pick<StoreLocation, "openQueues">): "here" | "anywhere" {
  return openQueues === undefined ? "here" : "anywhere";
}

/** The options of a `worker` with this question's team. */
export function workerWordsOf({ files, model, maxReaders }: AskJob): string[] {
  return [
    "--ask",
    ...(files === null ? [] : ["--files", files]),
    "--model",
    model,
    ...(maxReaders === defaultMaxReaders ? [] : ["--max-readers", String(maxReaders)]),
  ];
}
