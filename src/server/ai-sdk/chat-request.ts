import { z } from "zod";
import { InvalidInputError } from "../../errors/index.ts";
import {
  agentOfTurn,
  checkedFilePart,
  type Content,
  type ContentPart,
  jsonObjectSchema,
  jsonSchema,
} from "../../state/index.ts";
import { MOST_ANSWERS } from "../core/limits.ts";
import type { ClientPart } from "./message-translation.ts";

export const chatIdSchema = z
  .string()
  .min(1)
  .max(1_000)
  .refine((text) => text.isWellFormed(), "must be well-formed Unicode")
  .meta({
    description: "The client's id of the chat; the same name is the same conversation on all surfaces.",
  });

const approvalSchema = z.object({
  id: z.string(),
  approved: z.boolean().optional(),
  reason: z.string().optional(),
  signature: z.string().optional(),
});

const partSchema = z.object({
  type: z.string(),
  text: z.string().optional(),
  mediaType: z.string().optional(),
  url: z.string().optional(),
  filename: z.string().optional(),
  toolCallId: z.string().optional(),
  state: z.string().optional(),
  output: jsonSchema.optional(),
  errorText: z.string().optional(),
  providerExecuted: z.boolean().optional(),
  approval: approvalSchema.optional(),
  toolMetadata: z.object({ kind: z.string().optional() }).optional(),
  providerMetadata: z
    .object({ troupe: z.object({ answerOf: z.string() }).optional() })
    .optional()
    .catch(undefined),
});
type Part = z.output<typeof partSchema>;

const messageSchema = z.object({
  id: z.string().min(1).max(1_000),
  role: z.enum(["system", "user", "assistant"]),
  parts: z.array(z.looseObject({ type: z.string() })),
});

/** The body of a chat request, as `DefaultChatTransport` sends it. Other fields are ignored. */
export const chatBodySchema = z
  .object({
    id: chatIdSchema,
    messages: z
      .array(messageSchema)
      .min(1)
      .meta({ description: "The history, of which only the last message is read." }),
    trigger: z.enum(["submit-message", "regenerate-message"]).default("submit-message"),
    messageId: z.string().nullish(),
    tools: z
      .array(z.object({ name: z.string(), description: z.string(), parameters: jsonObjectSchema.optional() }))
      .default([])
      .meta({ description: "Tools that the page runs, for a definition with `clientTools: true`." }),
  })
  .meta({ id: "AiSdkChatRequest" });
export type ChatBody = z.output<typeof chatBodySchema>;

/** The user's new message. */
export interface NewInput {
  readonly kind: "input";
  readonly messageId: string;
  readonly content: Content;
}

/** The person's answers in the agent's last message. */
export interface NewAnswers {
  readonly kind: "answers";
  readonly messageId: string;
  readonly approvals: readonly GivenApproval[];
  /** Results of calls, by call id. */
  readonly outputs: ReadonlyMap<string, { readonly result: z.output<typeof jsonSchema>; readonly isError: boolean }>;
  readonly client: ClientPart;
}

export interface GivenApproval {
  readonly requestId: string;
  readonly isApproved: boolean;
  readonly reason: string | undefined;
  readonly argumentsHash: string | undefined;
}

/** Reads the last message. Throws `InvalidInputError` for parts that no model of this runtime accepts. */
export function newsOf({ messages }: Pick<ChatBody, "messages">): NewInput | NewAnswers {
  const last = messages.at(-1);
  if (last === undefined || last.role === "system") {
    throw new InvalidInputError(
      "the last message must have the role user, or assistant with approvals or tool outputs",
    );
  }
  const parsed = z.array(partSchema).safeParse(last.parts);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new InvalidInputError(`the last message is invalid at parts.${issue?.path.join(".")}: ${issue?.message}`);
  }
  const { id: messageId, role } = last;
  if (role === "user") return { kind: "input", messageId, content: contentOf(parsed.data) };
  return { kind: "answers", messageId, ...answersOf(parsed.data), client: clientPartOf(messageId, parsed.data) };
}

function contentOf(parts: readonly Part[]): Content {
  const content = parts.map((part): ContentPart => {
    const { type, text, mediaType, url, filename } = part;
    if (type === "text" && text !== undefined) return { type: "text", text };
    if (type === "file" && mediaType !== undefined && url !== undefined) {
      if (mediaType.startsWith("image/")) return { type: "image", url };
      const named = filename === undefined || filename === "" ? {} : { name: filename };
      const file = checkedFilePart({ type: "file", mediaType, url, ...named });
      if (file.ok) return file.part;
      throw new InvalidInputError(`a file of the last message is invalid: ${file.problem}`);
    }
    throw new InvalidInputError("a user message accepts parts of type text, and of type file with mediaType and url");
  });
  if (content.length === 0) throw new InvalidInputError("the last message has no parts; it needs a text or a file");
  return content.every((part) => part.type === "text") ? content.map(({ text }) => text).join("\n\n") : content;
}

function answersOf(parts: readonly Part[]): Pick<NewAnswers, "approvals" | "outputs"> {
  const approvals = new Map<string, GivenApproval>();
  const outputs = new Map<string, { result: z.output<typeof jsonSchema>; isError: boolean }>();
  for (const { state, approval, toolCallId, output, errorText } of parts) {
    if (state === "approval-responded" && approval?.approved !== undefined) {
      const { id: requestId, approved: isApproved, reason, signature: argumentsHash } = approval;
      approvals.set(requestId, { requestId, isApproved, reason, argumentsHash });
    }
    if (toolCallId === undefined) continue;
    if (state === "output-available") outputs.set(toolCallId, { result: output ?? null, isError: false });
    if (state === "output-error") outputs.set(toolCallId, { result: errorText ?? "", isError: true });
  }
  if (approvals.size > MOST_ANSWERS) throw new InvalidInputError(`a message accepts at most ${MOST_ANSWERS} approvals`);
  return { approvals: [...approvals.values()], outputs };
}

function clientPartOf(messageId: string, parts: readonly Part[]): ClientPart {
  const calls = parts.flatMap(({ toolCallId, state = "", providerExecuted }) => {
    if (toolCallId === undefined) return [];
    const isSettled = state.startsWith("output-");
    return [[toolCallId, { isSettled, isAsked: providerExecuted === false && !isSettled }] as const];
  });
  // A call of a subagent, a request for more budget and the result of a call as an answer are steps of their own; a step without parts is
  // sent again.
  const isOwn = (part: Part | undefined): boolean =>
    part !== undefined &&
    part.type !== "step-start" &&
    part.toolMetadata?.kind !== "budget" &&
    part.providerMetadata?.troupe === undefined &&
    (part.toolCallId === undefined || agentOfTurn(part.toolCallId) === agentOfTurn(messageId));
  return {
    steps: parts.filter(({ type }, index) => type === "step-start" && isOwn(parts[index + 1])).length,
    calls: new Map(calls),
    approvals: new Set(parts.flatMap(({ approval }) => approval?.id ?? [])),
    answers: new Set(parts.flatMap(({ providerMetadata }) => providerMetadata?.troupe?.answerOf ?? [])),
  };
}
