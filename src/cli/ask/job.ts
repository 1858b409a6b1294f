import { z } from "zod";
import { InvalidInputError } from "../../errors/index.ts";
import type { JsonObject } from "../../state/index.ts";

/** Name of the rule-based engine where a model is named. */
export const offlineName = "offline";
const defaultModel = "gpt-5-mini";
/** The question of `troupe ask` without --question, about the folder of this project's own documents. */
export const defaultQuestion = "How does troupe make sure that a team of agents never spends more than its budget?";
/** How many readers a lead may send out at once, unless --max-readers says otherwise. */
export const defaultMaxReaders = 6;

/** What a question was asked with; kept in the root agent's metadata, so that it can be carried on without any flag. */
const askJobSchema = z.object({
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
  const { question, files, maxReaders = defaultMaxReaders } = request;
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
