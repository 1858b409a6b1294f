import { z } from "zod";
import { type AgentDefinition, defineAgent, subagent } from "../../agents/index.ts";
import { shortHash, stableStringify } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type LanguageModel, offlineModel, openaiModel } from "../../model/index.ts";
import { documentsIn } from "./documents.ts";
import { fileTools } from "./file-tools.ts";
import { type AskJob, offlineName } from "./job.ts";
import {
  leadInstructions,
  mostReaders,
  readerInstructions,
  readerPrompt,
  readerToolDescription,
} from "./team-texts.ts";

export const leadName = "lead";

/** Limits of the whole question, its readers included. */
const leadBudget = { maxSteps: 12, maxTokens: 600_000, maxSeconds: 600 };
/** Limits of one reader. */
const readerBudget = { maxSteps: 8, maxTokens: 120_000, maxSeconds: 180 };

/** What a team is made for; the question does not change it. */
export type TeamJob = Pick<AskJob, "files" | "model" | "maxReaders">;

/** Where its agents may run: `anywhere` that their definitions are known by name, or in the process that asks. */
export type TeamReach = "here" | "anywhere";

/**
 * The lead of a team over one folder, for one job. The same job always gives the same definitions. Of those that may run
 * anywhere the names tell different jobs apart, so that a process never takes up what is meant for another folder, model or
 * number of readers than its own.
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
    name: "reader",
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
    instructions: instructionsFor(job.maxReaders),
    tools: [tools.list, tools.search, askReader],
    budget: leadBudget,
    price: priceOf(job.model),
  });
}

function markOf({ files, model, maxReaders }: TeamJob): string {
  return shortHash(stableStringify({ files, model, maxReaders })).slice(0, 6);
}

function instructionsFor(maxReaders: number): string {
  return leadInstructions.replaceAll(atMostFiles(mostReaders), atMostFiles(maxReaders));
}

function atMostFiles(count: number): string {
  return `at most ${count} ${count === 1 ? "file" : "files"}`;
}

function modelOf(name: string, environment: Readonly<Record<string, string | undefined>>): LanguageModel {
  if (name !== offlineName) return openaiModel(name);
  const speed = environment["TROUPE_OFFLINE_SPEED"] ?? "";
  if (speed === "") return offlineModel();
  const tokensPerSecond = Number(speed);
  if (tokensPerSecond > 0) return offlineModel({ tokensPerSecond });
  throw new InvalidInputError(`TROUPE_OFFLINE_SPEED is ${JSON.stringify(speed)}; it takes tokens per second, above 0`);
}

/** The rule-based engine costs nothing; what a model costs is looked up where that is asked for. */
function priceOf(model: string) {
  return model === offlineName ? { inputPerMillion: 0, outputPerMillion: 0 } : undefined;
}
