import { z } from "zod";
import type { ContentPart, FinishReason, JsonObject, ModelResponse } from "../state/index.ts";
import type { GenerateInput } from "../tools/index.ts";
import type { McpSamplingOptions } from "./mcp-input-options.ts";

/** Tokens of one answer, if the user has set no other limit. */
const DEFAULT_MAX_TOKENS = 4_096;

const contentSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.enum(["image", "audio"]), data: z.string(), mimeType: z.string() }),
]);
const requestSchema = z.object({
  messages: z
    .array(
      z.object({
        role: z.enum(["user", "assistant"]),
        content: z.union([contentSchema, z.array(contentSchema).min(1)]),
      }),
    )
    .min(1),
  systemPrompt: z.string().optional(),
  temperature: z.number().nonnegative().optional(),
  maxTokens: z.number().int().positive(),
  stopSequences: z.array(z.string().min(1).max(1_000)).max(64).optional(),
  tools: z.unknown().optional(),
});

/**
 * The model call that a server wants, or why it is refused, as the rest of a sentence about the request. Model preferences and the wish
 * for context are ignored: the agent's model answers, and no message of the agent is passed on.
 */
export function generateInputOf(
  params: unknown,
  { maxTokens = DEFAULT_MAX_TOKENS }: McpSamplingOptions,
): { readonly input: GenerateInput } | { readonly problem: string } {
  const read = requestSchema.safeParse(params);
  if (!read.success) {
    const [issue] = read.error.issues;
    const where = issue?.path.join(".") ?? "";
    return { problem: `it is not a valid request for text, images and audio (${where}: ${issue?.message ?? ""})` };
  }
  const { messages, systemPrompt, temperature, stopSequences, tools, maxTokens: wanted } = read.data;
  if (tools !== undefined) return { problem: "it offers tools to the model, which is not supported" };
  const system =
    systemPrompt === undefined || systemPrompt === "" ? [] : [{ role: "system" as const, content: systemPrompt }];
  return {
    input: {
      messages: [...system, ...messages.map(({ role, content }) => ({ role, content: partsOf(content) }))],
      maxOutputTokens: Math.min(wanted, maxTokens),
      ...(temperature === undefined ? {} : { temperature }),
      ...(stopSequences === undefined || stopSequences.length === 0 ? {} : { stopSequences }),
    },
  };
}

type Received = z.infer<typeof contentSchema>;

function partsOf(content: Received | readonly Received[]): string | ContentPart[] {
  const list = Array.isArray(content) ? (content as readonly Received[]) : [content as Received];
  const [first] = list;
  if (list.length === 1 && first?.type === "text") return first.text;
  return list.map((part): ContentPart => {
    if (part.type === "text") return { type: "text", text: part.text };
    const url = `data:${part.mimeType};base64,${part.data}`;
    return part.type === "image" ? { type: "image", url } : { type: "file", mediaType: part.mimeType, url };
  });
}

const stopReasons: Readonly<Record<FinishReason, string>> = {
  stop: "endTurn",
  length: "maxTokens",
  tool_calls: "endTurn",
  content_filter: "content_filter",
  unknown: "unknown",
};

/** The answer for the server, in the protocol's form. */
export function sampledOf({ content, model, finishReason }: ModelResponse): JsonObject {
  return { role: "assistant", content: { type: "text", text: content }, model, stopReason: stopReasons[finishReason] };
}

/** The text of a request for the person who approves it: the system prompt and the last message, cut. */
export function samplingWords({ messages, maxOutputTokens }: GenerateInput): string {
  const lines = messages.map(({ role, content }) => {
    const text =
      typeof content === "string"
        ? content
        : content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join(" ");
    return `${role}: ${text.slice(0, 1_000).toWellFormed()}${text.length > 1_000 ? "…" : ""}`;
  });
  const shown = lines.length > 4 ? [...lines.slice(0, 1), `… ${lines.length - 4} more …`, ...lines.slice(-3)] : lines;
  return `${shown.join("\n")}\n(at most ${String(maxOutputTokens)} tokens)`;
}
