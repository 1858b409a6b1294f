import { z } from "zod";
import type { Content, ContentPart } from "../../state/index.ts";
import { jsonSchema } from "../../state/index.ts";
import { isUuid } from "./task-ids.ts";
import { words } from "./validation-errors.ts";

const text = z.string({ error: words.text });
const id = text
  .refine(isUuid, { error: words.uuid })
  .transform((value) => value.toLowerCase())
  .nullish()
  .transform((value) => value ?? null);

const imageUrl = /^(data:image\/[\w.+-]+;base64,|https:\/\/)/i;

const itemSchema = z
  .object(
    { content_type: z.enum(["image", "text"], { error: words.contentType }).default("text"), content: text },
    { error: words.object },
  )
  .refine((item) => item.content_type === "text" || imageUrl.test(item.content), {
    error: words.image,
    path: ["content"],
  });

/** A user's message, the body of an invocation. Unknown fields are ignored. */
export const userMessageSchema = z
  .object(
    {
      session_id: id,
      task_id: id,
      items: z.array(itemSchema, { error: words.list }).min(1, { error: words.items }),
      user_context: z.record(z.string(), text, { error: words.dictionary }).nullish(),
    },
    { error: words.object },
  )
  .meta({ id: "UserMessage" });
export type UserMessage = z.output<typeof userMessageSchema>;

/** The body of a resumption; its text fields may be in the query instead. */
export const resumeBodySchema = z
  .object(
    {
      action: text.optional(),
      /** The reason of a rejection, which is stored with the decision. */
      reason: text.optional(),
      /** The call of `tool_calls` that `arguments` or `result` belong to, if several are open. */
      tool_call_id: text.optional(),
      /** With `approve`: runs the call with these arguments instead. */
      arguments: jsonSchema.optional(),
      /** With `answer`: the answer to a question, or the result of the caller's own tool. */
      result: jsonSchema.optional(),
    },
    { error: words.object },
  )
  .nullish()
  .meta({ id: "ResumeRequest" });
export type ResumeBody = NonNullable<z.output<typeof resumeBodySchema>>;

/** Input of the model: the user's context, then the items. */
export function userContent({ items, user_context }: UserMessage): Content {
  const context = Object.entries(user_context ?? {}).map(([key, value]) => `  ${key}: ${value}\n`);
  const preface = context.length === 0 ? [] : [`The following user context was provided:\n${context.join("")}`];
  const parts: ContentPart[] = [
    ...preface.map((one) => ({ type: "text", text: one }) as const),
    ...items.map(
      ({ content_type, content }): ContentPart =>
        content_type === "image" ? { type: "image", url: content } : { type: "text", text: content },
    ),
  ];
  const [only] = parts;
  return parts.length === 1 && only?.type === "text" ? only.text : parts;
}
