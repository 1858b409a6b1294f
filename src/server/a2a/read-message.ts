import type { Message, Part, SendMessageRequest } from "@a2a-js/sdk";
import { z } from "zod";
import { checkedFilePart, type Content, type ContentPart, jsonSchema } from "../../state/index.ts";
import { misfit } from "../core/failures.ts";
import { MOST_ANSWERS } from "../core/limits.ts";
import { idOfUrl } from "../core/url-ids.ts";
import type { Sdk } from "./sdk.ts";

/**
 * The extension for deciding requests: a message that lists it in `extensions` has data parts with one decision each.
 * Without it, a message to a waiting task never approves anything.
 */
export const EXTENSION = "urn:troupe:a2a:decisions:v1";

const decisionSchema = z.strictObject({
  requestId: z.string().transform(idOfUrl),
  verdict: z.enum(["approved", "edited", "rejected", "answered"]),
  arguments: jsonSchema.optional(),
  result: jsonSchema.optional(),
  isError: z.boolean().optional(),
  reason: z.string().optional(),
  argumentsHash: z.string().optional(),
});
export type WireDecision = z.output<typeof decisionSchema>;

/** A validated message: decisions or an input. */
export interface ReadMessage {
  readonly messageId: string;
  /** `null` if the client named none. */
  readonly contextId: string | null;
  readonly taskId: string | null;
  readonly said: { readonly content: Content } | { readonly decisions: readonly WireDecision[] };
}

const LONGEST_ID = 255;

/** Throws `RequestMalformedError` and `ContentTypeNotSupportedError`. */
export function readMessage(sdk: Sdk, { message }: SendMessageRequest): ReadMessage {
  const { codecs, errors } = sdk;
  const malformed = (words: string): Error => new errors.RequestMalformedError(words);
  if (message === undefined) throw malformed("message is missing");
  if (message.messageId === "") throw malformed("message.messageId is missing");
  if (message.role !== codecs.Role.ROLE_USER) throw malformed("message.role must be ROLE_USER");
  if (message.parts.length === 0) throw malformed("message.parts is empty");
  for (const name of ["messageId", "contextId", "taskId"] as const) {
    if (message[name].length > LONGEST_ID) throw malformed(`message.${name} is longer than ${LONGEST_ID} characters`);
  }
  const said = message.extensions.includes(EXTENSION)
    ? { decisions: decisionsOf(message, malformed) }
    : { content: partsContent(sdk, message.parts) };
  return { messageId: message.messageId, contextId: named(message.contextId), taskId: named(message.taskId), said };
}

function named(id: string): string | null {
  return id === "" ? null : id;
}

function decisionsOf({ parts, taskId }: Message, malformed: (words: string) => Error): readonly WireDecision[] {
  if (taskId === "") throw malformed("message.taskId is missing: decisions are for a task");
  if (parts.length > MOST_ANSWERS) {
    throw malformed(`message.parts accepts at most ${MOST_ANSWERS} decisions; it has ${parts.length}`);
  }
  return parts.map(({ content }, index) => {
    const where = `message.parts[${index}]`;
    if (content?.$case !== "data") throw malformed(`${where} must be a data part with a decision`);
    const { data, error } = decisionSchema.safeParse(content.value);
    if (data) return data;
    throw malformed(misfit("body", content.value, error).message.replace(/^body/, `${where}.data`));
  });
}

function partsContent(sdk: Sdk, parts: readonly Part[]): Content {
  const read = parts.map((part, index) => partOf(sdk, part, index));
  const [only] = read;
  return read.length === 1 && only?.type === "text" ? only.text : read;
}

/** Images of other types are files. */
const shownImages: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

function partOf({ errors }: Sdk, { content, mediaType, filename }: Part, index: number): ContentPart {
  const type = mediaType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const fileOf = (url: string): ContentPart => {
    const named = filename === "" ? {} : { name: filename };
    const checked = checkedFilePart({ type: "file", mediaType: type, url, ...named });
    if (checked.ok) return checked.part;
    throw new errors.ContentTypeNotSupportedError(`message.parts[${index}]: ${checked.problem}`);
  };
  switch (content?.$case) {
    case "text":
      return { type: "text", text: content.value };
    case "data":
      return { type: "text", text: JSON.stringify(content.value ?? null) };
    case "raw":
      if (shownImages.has(type)) {
        return { type: "image", url: `data:${type};base64,${Buffer.from(content.value).toString("base64")}` };
      }
      if (type.startsWith("text/") || type === "application/json") {
        return { type: "text", text: Buffer.from(content.value).toString("utf8") };
      }
      return fileOf(`data:${type};base64,${Buffer.from(content.value).toString("base64")}`);
    case "url":
      if (shownImages.has(type) && /^https:\/\//i.test(content.value)) return { type: "image", url: content.value };
      return fileOf(content.value);
    default:
      throw new errors.RequestMalformedError(`message.parts[${index}] has no content`);
  }
}
