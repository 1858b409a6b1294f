import { z } from "zod";
import { InvalidInputError } from "../../errors/index.ts";
import { type Content, type ContentPart, jsonObjectSchema, jsonSchema } from "../../state/index.ts";
import type { AgUiMessage } from "./events.ts";
import { resumeEntrySchema } from "./interrupts.ts";

const id = z.string().min(1).max(1_000);

const sourceSchema = z.object({
  type: z.enum(["data", "url", "file"]),
  value: z.string(),
  mimeType: z.string().optional(),
});

const partSchema = z.object({
  type: z.enum(["text", "image", "audio", "video", "document"]),
  text: z.string().optional(),
  source: sourceSchema.optional(),
});

const messageSchema = z.object({
  id: z.string(),
  role: z.enum(["developer", "system", "assistant", "user", "tool", "activity", "reasoning"]),
  /** Text, parts, or the object of an activity. */
  content: jsonSchema.optional(),
  toolCallId: z.string().optional(),
  error: z.string().optional(),
  subagentRunId: z.string().optional(),
});
type InputMessage = z.output<typeof messageSchema>;

/** The body of a run: `RunAgentInput` of AG-UI 1.0. Fields that it does not name are ignored. */
export const runInputSchema = z
  .object({
    threadId: id.meta({ description: "A name that the client chooses: one name is one conversation on all surfaces." }),
    runId: id.meta({ description: "Names the run: the same one again follows the same run." }),
    protocolVersion: z.string().optional(),
    messages: z.array(messageSchema).meta({ description: "The history; what follows the last answer is new." }),
    tools: z
      .array(z.object({ name: z.string(), description: z.string(), parameters: jsonObjectSchema.optional() }))
      .default([])
      .meta({ description: "Tools that the front end runs, for a definition with `clientTools: true`." }),
    context: z.array(z.object({ description: z.string(), value: z.string() })).default([]),
    resume: z.array(resumeEntrySchema).default([]).meta({ description: "Answers to all open interrupts." }),
  })
  .meta({ id: "RunAgentInput" });
export type RunInput = z.output<typeof runInputSchema>;

/** What a client says for the first time. */
export interface News {
  /** Messages of the user, with the ids that the client gave them. */
  readonly said: readonly { readonly id: string; readonly content: readonly ContentPart[] }[];
  /** Results of tools, by call; those of the front end among them. */
  readonly results: ReadonlyMap<string, { readonly text: string; readonly isError: boolean }>;
  /** All calls whose results the client has. */
  readonly answered: ReadonlySet<string>;
}

/**
 * The part of a history that follows the last message of the agent itself: the whole history comes with each run. Throws
 * `InvalidInputError` for content that no model of this runtime takes.
 */
export function newsOf({ messages }: Pick<RunInput, "messages">): News {
  const own = messages.filter(({ subagentRunId }) => subagentRunId === undefined);
  const fresh = own.slice(own.findLastIndex(({ role }) => role === "assistant") + 1);
  const results = fresh.filter(({ role }) => role === "tool");
  return {
    said: fresh.filter(({ role }) => role === "user").map((message) => ({ id: message.id, content: partsOf(message) })),
    results: new Map(
      results.map(({ toolCallId = "", error, ...message }) => [
        toolCallId,
        { text: error ?? textOfParts(partsOf(message)), isError: error !== undefined },
      ]),
    ),
    answered: new Set(messages.flatMap(({ role, toolCallId }) => (role === "tool" ? (toolCallId ?? []) : []))),
  };
}

/**
 * What the user said before the first answer of each turn, as the client has it; under `null` what no answer follows yet.
 * Answers have our ids, and what users said has the client's.
 */
export type Told = ReadonlyMap<string | null, readonly AgUiMessage[]>;

export function toldIn({ messages }: Pick<RunInput, "messages">): Told {
  const told = new Map<string | null, readonly AgUiMessage[]>();
  let waiting: AgUiMessage[] = [];
  for (const { id: messageId, role, content = "", subagentRunId } of messages) {
    if (subagentRunId !== undefined) continue;
    if (role === "user") waiting.push({ id: messageId, role, content });
    if (role !== "assistant" || waiting.length === 0) continue;
    told.set(turnOfMessage(messageId), waiting);
    waiting = [];
  }
  return told.set(null, waiting);
}

/** The turn in which the model gave an answer. */
export function turnOfMessage(messageId: string): string {
  return messageId.split(":", 1)[0] ?? "";
}

/** What the model is given: what the application tells of itself, then the messages. */
export function contentOf(said: News["said"], context: RunInput["context"]): Content {
  const told = context.map(({ description, value }) => `  ${description}: ${value}\n`).join("");
  const preface: ContentPart[] =
    told === "" ? [] : [{ type: "text", text: `The application gave this context:\n${told}\n` }];
  const messages = said.map(({ content }) => content);
  const gap: ContentPart = { type: "text", text: "\n\n" };
  const parts = [...preface, ...messages.flatMap((content, index) => (index === 0 ? content : [gap, ...content]))];
  return parts.every(({ type }) => type === "text") ? textOfParts(parts) : parts;
}

function textOfParts(parts: readonly ContentPart[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

function partsOf({ id: messageId, content = "" }: Pick<InputMessage, "id" | "content">): readonly ContentPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  const parts = z.array(partSchema).safeParse(content);
  if (!parts.success) throw new InvalidInputError(`message ${messageId}: its content is no text and no list of parts`);
  return parts.data.map((part): ContentPart => {
    if (part.type === "text") return { type: "text", text: part.text ?? "" };
    const { type, value, mimeType } = part.source ?? {};
    if (part.type === "image" && value !== undefined && type === "url") return { type: "image", url: value };
    if (part.type === "image" && value !== undefined && type === "data" && mimeType !== undefined) {
      return { type: "image", url: `data:${mimeType};base64,${value}` };
    }
    throw new InvalidInputError(`message ${messageId}: only text, and images with their data or a URL, are taken`);
  });
}
