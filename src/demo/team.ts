import { z } from "zod";
import { type AgentDefinition, defineAgent, subagent } from "../agents/index.ts";
import { shortHash, stableStringify } from "../base/index.ts";
import type { LanguageModel } from "../model/index.ts";
import { toolNames } from "./document-model.ts";
import { fileTools } from "./file-tools.ts";

/** Limits of the whole question including its readers, and of one reader. */
const leadBudget = { maxSteps: 12, maxTokens: 600_000, maxSeconds: 600 };
const readerBudget = { maxSteps: 8, maxTokens: 120_000, maxSeconds: 180 };

/** The settings of a team, independent of the question. `root`: the folder's absolute path. */
interface TeamJob {
  readonly root: string;
  /** Entries of the folder that the team may read. Default: all. */
  readonly only?: readonly string[];
  readonly model: LanguageModel;
  /** Maximum number of concurrent readers. */
  readonly maxReaders: number;
}

/**
 * Defines the lead of a team for one folder. Equal jobs produce equal definitions. If agents may run in any process,
 * their names differ between jobs, so that no process runs an agent for another folder, model or number of readers.
 */
export function askTeam({ root, only, model, maxReaders }: TeamJob, reach: "here" | "anywhere"): AgentDefinition {
  const job = shortHash(stableStringify({ files: only === undefined ? root : null, model: model.name, maxReaders }));
  const suffix = reach === "here" ? "" : `-${job.slice(0, 6)}`;
  const tools = fileTools(root, only);
  // Without a price, the runtime looks the model up in its price table.
  const price = model.provider === "offline" ? { inputPerMillion: 0, outputPerMillion: 0 } : undefined;
  const reader = defineAgent({
    name: `reader${suffix}`,
    model,
    instructions: readerInstructions,
    tools: [tools.search, tools.read],
    budget: { maxSteps: readerBudget.maxSteps },
    price,
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
    policy: { maxChildren: maxReaders },
  });
  return defineAgent({
    name: `lead${suffix}`,
    model,
    instructions: leadInstructions(maxReaders),
    tools: [tools.list, tools.search, askReader],
    budget: leadBudget,
    price,
  });
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

export const readerToolDescription =
  "Delegates to a reader, a subagent with its own budget, that looks into one file and gives back the sentences that speak to the question, each as path:line: sentence. Call it once per file, all files in the same step.";

/** The reader's prompt, built from the tool's arguments. */
export function readerPrompt({ file, question }: { readonly file: string; readonly question: string }): string {
  return `File: ${file}\nQuestion: ${question.replace(/\s+/g, " ").trim()}`;
}
