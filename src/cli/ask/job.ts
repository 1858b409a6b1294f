import { z } from "zod";
import { InvalidInputError } from "../../errors/index.ts";
import type { JsonObject } from "../../state/index.ts";
import { mostReaders } from "./team-texts.ts";

/** Name of the rule-based engine where a model is named. */
export const offlineName = "offline";
export const defaultModel = "gpt-5-mini";

/** What a question was asked with; kept in the root agent's metadata, so that it can be carried on without any flag. */
export const askJobSchema = z.object({
  command: z.literal("ask"),
  question: z.string(),
  /** The folder, absolute; null for this project's own documents. */
  files: z.string().nullable(),
  /** A model of the Chat Completions server, or `offline`. */
  model: z.string(),
  maxReaders: z.int().positive(),
});
export type AskJob = z.infer<typeof askJobSchema>;

/** The job an agent was made for; undefined when it is not one of `ask`. */
export function askJobOf(metadata: JsonObject): AskJob | undefined {
  const parsed = askJobSchema.safeParse(metadata);
  return parsed.success ? parsed.data : undefined;
}

export interface AskRequest {
  readonly question: string;
  readonly files: string | null;
  readonly model?: string | undefined;
  readonly maxReaders?: number | undefined;
}

/** A new job: the model asked for, else OpenAI's where there is a key, else the rule-based engine. */
export function newAskJob(request: AskRequest, environment: Readonly<Record<string, string | undefined>>): AskJob {
  const { question, files, maxReaders = mostReaders } = request;
  const model = request.model ?? (hasKey(environment) ? defaultModel : offlineName);
  return withUsableModel({ command: "ask", question, files, model, maxReaders }, environment);
}

/** Throws `InvalidInputError` when the job's model needs a key and there is none. */
export function withUsableModel(job: AskJob, environment: Readonly<Record<string, string | undefined>>): AskJob {
  if (job.model === offlineName || hasKey(environment)) return job;
  throw new InvalidInputError(
    `model "${job.model}" needs a key: set OPENAI_API_KEY (any text for a local server at OPENAI_BASE_URL), or use --model offline`,
  );
}

function hasKey(environment: Readonly<Record<string, string | undefined>>): boolean {
  return (environment["OPENAI_API_KEY"] ?? "") !== "";
}
