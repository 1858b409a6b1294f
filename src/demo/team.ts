import { existsSync, realpathSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { type AgentDefinition, defineAgent, subagent } from "../agents/index.ts";
import { shortHash, stableStringify } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type LanguageModel, openaiModel } from "../model/index.ts";
import { documentModel, toolNames } from "./document-model.ts";
import { fileTools } from "./file-tools.ts";

const leadName = "lead";

/** Limits of the whole question, its readers included. */
const leadBudget = { maxSteps: 12, maxTokens: 600_000, maxSeconds: 600 };
/** Limits of one reader. */
const readerBudget = { maxSteps: 8, maxTokens: 120_000, maxSeconds: 180 };

/** The settings of a team, independent of the question. */
interface TeamJob {
  /** The folder, absolute; null for this project's own documents. */
  readonly files: string | null;
  /** A model of the Chat Completions server, or `offline` for the rule-based engine. */
  readonly model: string;
  /** How many readers the lead may send out at once. */
  readonly maxReaders: number;
}

/** Where the agents may run: in any process that knows their definitions by name, or only in the process that asks. */
type TeamReach = "here" | "anywhere";

const offlineName = "offline";

/**
 * Defines the lead of a team over one folder. The same job always gives the same definitions. The names of agents that may
 * run anywhere differ from job to job, so that a process never runs an agent that is meant for another folder, model or
 * number of readers.
 */
export function askTeam(
  job: TeamJob,
  environment: Readonly<Record<string, string | undefined>>,
  reach: TeamReach = "here",
): AgentDefinition {
  const named = (name: string): string => (reach === "here" ? name : `${name}-${markOf(job)}`);
  const documents = documentsIn(job.files);
  const tools = fileTools(documents.root, documents.only);
  const model = modelOf(job.model, environment);
  const reader = defineAgent({
    name: named("reader"),
    model,
    instructions: readerInstructions,
    tools: [tools.search, tools.read],
    budget: { maxSteps: readerBudget.maxSteps },
    price: priceOf(job.model),
  });
  const askReader = subagent(reader, {
    name: toolNames.reader,
    description: readerToolDescription,
    parameters: z.object({
      file: z.string().min(1).describe("Path of the file, as list_files shows it."),
      question: z.string().min(1).describe("The whole question."),
    }),
    input: readerPrompt,
    budget: readerBudget,
    policy: { maxChildren: job.maxReaders },
  });
  return defineAgent({
    name: named(leadName),
    model,
    instructions: leadInstructions(job.maxReaders),
    tools: [tools.list, tools.search, askReader],
    budget: leadBudget,
    price: priceOf(job.model),
  });
}

function markOf({ files, model, maxReaders }: TeamJob): string {
  return shortHash(stableStringify({ files, model, maxReaders })).slice(0, 6);
}

function modelOf(name: string, environment: Readonly<Record<string, string | undefined>>): LanguageModel {
  if (name !== offlineName) return openaiModel(name);
  const speed = environment["TROUPE_OFFLINE_SPEED"] ?? "";
  if (speed === "") return documentModel();
  const tokensPerSecond = Number(speed);
  if (tokensPerSecond > 0) return documentModel({ tokensPerSecond });
  throw new InvalidInputError(`TROUPE_OFFLINE_SPEED is ${JSON.stringify(speed)}; it takes tokens per second, above 0`);
}

/** Without a price here, the runtime looks the model up in its price table. */
function priceOf(model: string) {
  return model === offlineName ? { inputPerMillion: 0, outputPerMillion: 0 } : undefined;
}

/** The files that a team may read. */
interface Documents {
  readonly root: string;
  /** Entries of the root to which it is limited; undefined: all of it. */
  readonly only: readonly string[] | undefined;
  /** Name to show to a person. */
  readonly title: string;
}

/** This file lies two folders below it: in `src/demo` as in `dist/chunks`. */
const packageRoot = fileURLToPath(new URL("../..", import.meta.url));

/** The given folder, or this project's own README and documents, wherever this program was started from. */
export function documentsIn(files: string | null): Documents {
  if (files !== null) return { root: files, only: undefined, title: files };
  const only = ["README.md", "docs"].filter((name) => existsSync(join(packageRoot, name)));
  return { root: packageRoot, only, title: "this project's own documents" };
}

/** The absolute path of a folder that a user named. Throws `InvalidInputError` when there is none. */
export function folderAt(path: string, directory: string): string {
  const folder = resolve(directory, path);
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return realpathSync(folder);
  throw new InvalidInputError(
    `--files ${path}: ${stats === undefined ? "there is no such folder" : "that is no folder"}; give a folder of text files`,
  );
}

export function leadInstructions(maxReaders: number): string {
  return `You lead a team that answers a question about the text files of one folder.

1. List the files and search them for the words that the answer would use.
2. Choose the files that matter, at most ${maxReaders} ${maxReaders === 1 ? "file" : "files"}, and ask one reader for each, all in the same step. Give the reader the path of its file and the whole question.
3. Merge the findings: the best first, each once, each with its source as path:line. Where findings contradict each other, say so.

State nothing that no finding supports. When the files do not answer the question, say so plainly. Name the files that a reader could not finish.`;
}

export const readerInstructions = `You are a reader: you look into one file, for another agent that merges the findings of several readers.

1. Search the file for the words of the question, and for others that the answer would use.
2. Read the lines around the hits.
3. Answer with the sentences that speak to the question, at most six, the best first, each on a line of its own as path:line: sentence, word for word, with the number of the line where the sentence begins. Add nothing else.

When the file says nothing about the question, answer that in one sentence.`;

/** Description of the tool that runs a reader. */
export const readerToolDescription =
  "Delegates to a reader, a subagent with its own budget, that looks into one file and gives back the sentences that speak to the question, each as path:line: sentence. Call it once per file, all files in the same step.";

/** The reader's prompt, from the arguments of that tool. */
export function readerPrompt({ file, question }: { readonly file: string; readonly question: string }): string {
  return `File: ${file}\nQuestion: ${question.replace(/\s+/g, " ").trim()}`;
}
