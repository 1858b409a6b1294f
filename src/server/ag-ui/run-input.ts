import { z } from "zod";
import { describeValue } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { checkedFilePart, type Content, type ContentPart, jsonObjectSchema, jsonSchema } from "../../state/index.ts";
import { MOST_ANSWERS } from "../core/limits.ts";
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

const callSchema = z.object({
  id: z.string(),
  type: z.literal("function"),
  function: z.object({ name: z.string(), arguments: z.string() }),
});

const messageSchema = z.object({
  id: z.string(),
  role: z.enum(["developer", "system", "assistant", "user", "tool", "activity", "reasoning"]),
  /** Text, parts, or the object of an activity. */
  content: jsonSchema.optional(),
  toolCalls: z.array(callSchema).optional(),
  toolCallId: z.string().optional(),
  error: z.string().optional(),
  subagentRunId: z.string().optional(),
});
type InputMessage = z.output<typeof messageSchema>;

/** The body of a run: `RunAgentInput` of AG-UI 1.0. Other fields are ignored. */
export const runInputSchema = z
  .object({
    threadId: id.meta({
      description: "The client's name of the conversation; the same name is the same conversation on all surfaces.",
    }),
    runId: id.meta({ description: "Id of the run; a repeated id follows the same run." }),
    protocolVersion: z.string().optional(),
    messages: z.array(messageSchema).meta({ description: "The history; messages after the last answer are new." }),
    tools: z
      .array(z.object({ name: z.string(), description: z.string(), parameters: jsonObjectSchema.optional() }))
      .default([])
      .meta({ description: "Tools that the front end runs, for a definition with `clientTools: true`." }),
    context: z.array(z.object({ description: z.string(), value: z.string() })).default([]),
    resume: z
      .array(resumeEntrySchema)
      .max(MOST_ANSWERS)
      .default([])
      .meta({ description: "Answers to all open interrupts." }),
    forwardedProps: jsonSchema.optional().meta({
      description:
        'With `{ ifBusy: "steer" }` new messages are given to the open turn, if there is one. Other fields are ignored.',
    }),
  })
  .meta({ id: "RunAgentInput" });
export type RunInput = z.output<typeof runInputSchema>;

/** Whether new messages go to the open turn. Throws `InvalidInputError` for another `ifBusy` than `refuse` and `steer`. */
export function isSteering({ forwardedProps }: Pick<RunInput, "forwardedProps">): boolean {
  const props = jsonObjectSchema.safeParse(forwardedProps);
  const ifBusy = props.success ? props.data["ifBusy"] : undefined;
  if (ifBusy === undefined || ifBusy === "refuse" || ifBusy === "steer") return ifBusy === "steer";
  throw new InvalidInputError(
    `forwardedProps.ifBusy is ${describeValue(ifBusy)}; expected "refuse" or "steer": what a new message does while a turn is open`,
  );
}

/** The client's new input. */
export interface News {
  /** New user messages, with the client's ids. */
  readonly said: readonly { readonly id: string; readonly content: readonly ContentPart[] }[];
  /** New results of tools by call id, including those of front-end tools. */
  readonly results: ReadonlyMap<string, { readonly text: string; readonly isError: boolean }>;
  /** All calls whose results the client has. */
  readonly answered: ReadonlySet<string>;
}

/**
 * Reads the messages after the last one of the agent itself, because each run contains the whole history. Throws
 * `InvalidInputError` for content that no model of this runtime accepts.
 */
export function newsOf({ messages }: Pick<RunInput, "messages">): News {
  const fresh = messages.slice(messages.findLastIndex((one) => one.role === "assistant" && isOwn(one)) + 1);
  // A result may belong to a call of a subagent.
  const results = fresh.filter(({ role }) => role === "tool");
  return {
    said: ownOf(fresh)
      .filter(({ role }) => role === "user")
      .map((message) => ({ id: message.id, content: partsOf(message) })),
    results: new Map(
      results.map(({ toolCallId = "", error, ...message }) => [
        toolCallId,
        { text: error ?? textOfParts(partsOf(message)), isError: error !== undefined },
      ]),
    ),
    answered: new Set(messages.flatMap(({ role, toolCallId }) => (role === "tool" ? (toolCallId ?? []) : []))),
  };
}

type ToolResult = Extract<AgUiMessage, { readonly role: "tool" }>;

/** The client's messages in their original form; the stored ones have our ids. */
export interface Told {
  /** Messages before the first answer of each turn, by turn id, including instructions; answers have our ids. */
  readonly before: ReadonlyMap<string, readonly AgUiMessage[]>;
  /** Messages after the last answer. */
  readonly last: readonly AgUiMessage[];
  /** Results of tools, by call id. */
  readonly results: ReadonlyMap<string, ToolResult>;
  /** Messages that were given to a running turn, by their stored ids; those of the client have its ids. */
  readonly steered: ReadonlyMap<string, AgUiMessage>;
}

/** @param steered The stored ids of the client's messages that were given to a running turn, by the client's ids. */
export function toldIn({ messages }: Pick<RunInput, "messages">, steered: ReadonlyMap<string, string>): Told {
  const given = new Map<string, AgUiMessage>();
  const before = new Map<string, AgUiMessage[]>();
  let last: AgUiMessage[] = [];
  for (const { id: messageId, role, content = "" } of ownOf(messages)) {
    const storedId = steered.get(messageId);
    if (role === "user" && storedId !== undefined) given.set(storedId, { id: messageId, role, content });
    else if (role === "user" || role === "system" || role === "developer") last.push({ id: messageId, role, content });
    if (role !== "assistant") continue;
    const turnId = turnOfMessage(messageId);
    const known = before.get(turnId);
    if (known === undefined) before.set(turnId, last);
    else for (const message of last) known.push(message);
    last = [];
  }
  const results = messages.flatMap(({ id: messageId, role, toolCallId, content = "" }): [string, ToolResult][] => {
    if (role !== "tool" || toolCallId === undefined) return [];
    const text = typeof content === "string" ? content : JSON.stringify(content);
    return [[toolCallId, { id: messageId, role, toolCallId, content: text }]];
  });
  return { before, last, results: new Map(results), steered: given };
}

/** Messages of the agent itself and of its users, without those of subagents. */
function ownOf(messages: readonly InputMessage[]): readonly InputMessage[] {
  return messages.filter((one) => isOwn(one));
}

function isOwn({ subagentRunId }: InputMessage): boolean {
  return subagentRunId === undefined;
}

/** The turn of a model's answer. */
export function turnOfMessage(messageId: string): string {
  return messageId.split(":", 1)[0] ?? "";
}

/** Input of the model: the application's context, then the messages. */
export function inputContent(said: News["said"], context: RunInput["context"]): Content {
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
  if (!parts.success) throw new InvalidInputError(`message ${messageId}: content must be text or a list of parts`);
  return parts.data.map((part): ContentPart => {
    if (part.type === "text") return { type: "text", text: part.text ?? "" };
    const { type, value, mimeType } = part.source ?? {};
    if (part.type === "image" && value !== undefined && type === "url") return { type: "image", url: value };
    if (part.type === "image" && value !== undefined && type === "data" && mimeType !== undefined) {
      return { type: "image", url: `data:${mimeType};base64,${value}` };
    }
    if (part.type !== "image" && value !== undefined && mimeType !== undefined && type !== "file") {
      const url = type === "url" ? value : `data:${mimeType.replace(/;.*$/s, "")};base64,${value}`;
      const file = checkedFilePart({ type: "file", mediaType: mimeType, url });
      if (file.ok) return file.part;
      throw new InvalidInputError(`message ${messageId}: ${file.problem}`);
    }
    throw new InvalidInputError(
      `message ${messageId}: only text, images with data or a URL, and files with a mimeType and data or a URL are accepted`,
    );
  });
}
