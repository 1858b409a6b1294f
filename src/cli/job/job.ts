import { relative } from "node:path";
import { z } from "zod";
import type { AgentDefinition } from "../../agents/index.ts";
import type { Budget } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { Runtime, RuntimeOptions } from "../../runtime/index.ts";
import type { JsonObject } from "../../state/index.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import { mcpWords } from "../mcp/mcp-tools.ts";
import type { ViewOptions } from "../view/create-reporter.ts";
import type { Reporter } from "../view/reporter.ts";
import { oneLine } from "../view/terminal-text.ts";
import type { StoreLocation } from "./store-location.ts";
import type { Inspection } from "./inspection.ts";
import type { ForWorkers, Where, WhereOptions } from "./where.ts";

export interface Job extends ForWorkers {
  /** The root's definition, and others that can be started by name. */
  readonly agents: readonly [AgentDefinition, ...AgentDefinition[]];
  /** Its file's rule on who may decide, if any. */
  readonly mayDecide?: RuntimeOptions["mayDecide"];
  readonly rootAgentId: string;
  readonly metadata: JsonObject;
  /** Input of a new turn if none is open; null continues the conversation without input. */
  readonly input: string | null;
  /** Limits of that turn; each replaces the definition's. */
  readonly budget?: Budget | undefined;
  /** Whether the agent exists and its open turn is to be continued. */
  readonly isResumed: boolean;
  readonly header: readonly string[];
  /** Command lines for the person. */
  readonly resumeCommand: string;
  readonly showCommand: string;
}

export type JobOptions = ViewOptions & WhereOptions;

export interface Following {
  readonly runtime: Runtime;
  readonly job: Job;
  readonly reporter: Reporter;
  /** Whether a person at the terminal can be asked. */
  readonly isInteractive: boolean;
  /** The process that runs its turns. */
  readonly where: Where;
  /** The inspector's page, if requested. */
  readonly inspector?: Inspection | undefined;
}

/** Metadata that `run` and `chat` store with an agent, so that it can be resumed without naming the file again. */
const fileJobSchema = z.object({
  command: z.enum(["run", "chat"]),
  /** Absolute path of the agent file. */
  file: z.string(),
  /** Input of the first turn; empty for a chat. */
  input: z.string(),
  /** Absolute path of the file with MCP servers, if the agent has their tools. */
  mcp: z.string().optional(),
});
export type FileJob = z.infer<typeof fileJobSchema>;

/** The metadata of an agent that `run` or `chat` started; `undefined` for others. */
export function fileJobOf(metadata: JsonObject): FileJob | undefined {
  const parsed = fileJobSchema.safeParse(metadata);
  return parsed.success ? parsed.data : undefined;
}

interface FileWork {
  /** Absolute path. */
  readonly file: string;
  readonly agents: readonly [AgentDefinition, ...AgentDefinition[]];
  readonly input: string;
  readonly mayDecide?: Job["mayDecide"];
  /** Absolute path of the file with MCP servers, if any. */
  readonly mcp?: string | undefined;
}

interface FileJobContext {
  readonly rootAgentId: string;
  readonly store: StoreLocation;
  readonly isResumed: boolean;
}

export function jobOfFile(
  { invocation, directory }: CliContext,
  { file, agents, input, mayDecide, mcp }: FileWork,
  place: FileJobContext,
): Job {
  const { rootAgentId, store, isResumed } = place;
  const [{ name, model }] = agents;
  return {
    agents,
    mayDecide,
    rootAgentId,
    metadata: { command: "run", file, input, ...(mcp === undefined ? {} : { mcp }) } satisfies FileJob,
    input,
    isResumed,
    header: [
      ...(input === "" ? [] : [`Input: ${oneLine(input)}`]),
      `For ${name} (${model.provider}/${model.name}); kept in ${store.name} as ${rootAgentId}`,
    ],
    resumeCommand: commandLine(invocation, "resume", [rootAgentId, ...store.words]),
    showCommand: commandLine(invocation, "show", [rootAgentId, ...store.words]),
    workerWords: ["--agents", relative(directory, file), ...mcpWords(mcp && relative(directory, mcp))],
    store,
  };
}

/** Name of the rule-based engine, in place of a model's. */
export const offlineName = "offline";
const defaultModel = "gpt-5-mini";
/** The question of `troupe ask` without --question, about this project's own documents. */
export const defaultQuestion = "How does troupe make sure that a team of agents never spends more than its budget?";
/** Maximum number of concurrent readers of a lead without --max-readers. */
export const defaultMaxReaders = 6;

/** Metadata that `ask` stores with the root agent, so that the question can be resumed without options. */
const askJobSchema = z.object({
  command: z.literal("ask"),
  question: z.string(),
  /** Absolute path of the folder; null for this project's own documents. */
  files: z.string().nullable(),
  /** A model of the Chat Completions server, or `offline`. */
  model: z.string(),
  maxReaders: z.int().positive(),
  /** Absolute path of the file with MCP servers, if the lead has their tools. */
  mcp: z.string().optional(),
});
export type AskJob = z.infer<typeof askJobSchema>;

/** The metadata of an agent that `ask` started; `undefined` for others. */
export function askJobOf(metadata: JsonObject): AskJob | undefined {
  const parsed = askJobSchema.safeParse(metadata);
  return parsed.success ? parsed.data : undefined;
}

interface AskRequest {
  readonly question: string;
  readonly files: string | null;
  readonly model?: string | undefined;
  readonly maxReaders?: number | undefined;
}

/** A new question with the given model; by default OpenAI's default model if there is a key, else the offline engine. */
export function newAskJob(request: AskRequest, environment: Readonly<Record<string, string | undefined>>): AskJob {
  const { question, files, maxReaders = defaultMaxReaders } = request;
  const model = request.model ?? (hasKey(environment) ? defaultModel : offlineName);
  return withUsableModel({ command: "ask", question, files, model, maxReaders }, environment);
}

/** Throws `InvalidInputError` if the model needs a key and none is set. */
export function withUsableModel(job: AskJob, environment: Readonly<Record<string, string | undefined>>): AskJob {
  if (job.model === offlineName || hasKey(environment)) return job;
  throw new InvalidInputError(
    `model "${job.model}" needs a key: set OPENAI_API_KEY (any text for a local server at OPENAI_BASE_URL), or use --model offline`,
  );
}

function hasKey(environment: Readonly<Record<string, string | undefined>>): boolean {
  return (environment["OPENAI_API_KEY"] ?? "") !== "";
}
