import { ModelError } from "../../errors/index.ts";
import type { ContentPart, JsonObject, ProviderOptions } from "../../state/index.ts";
import type { FormedAnswer, FormedMessage } from "../prompt-form.ts";
import { wireArray, wireJson, wireObject, wireText } from "../wire-values.ts";
import type {
  AiSdkLanguageModel,
  FilePart,
  ProviderMessage,
  ReasoningPart,
  TextPart,
  ToolCallPart,
} from "./provider-model.ts";

/** How images are sent to one model. */
export interface ImageRules {
  readonly specification: AiSdkLanguageModel["specificationVersion"];
  /** URLs that the provider fetches itself, by media type. */
  readonly supportedUrls: Readonly<Record<string, readonly RegExp[]>>;
}

/** @throws ModelError of kind `configuration` for an image that the provider cannot fetch. */
export function providerPrompt(messages: readonly FormedMessage[], rules: ImageRules): readonly ProviderMessage[] {
  const sent: ProviderMessage[] = [];
  for (const message of messages) {
    if (message.role !== "tool") {
      sent.push(providerMessage(message, rules));
      continue;
    }
    const { id: toolCallId, name: toolName, text: value, isError } = message;
    const result = {
      type: "tool-result",
      toolCallId,
      toolName,
      output: { type: isError ? "error-text" : "text", value },
    } as const;
    const last = sent.at(-1);
    if (last?.role === "tool") sent[sent.length - 1] = { role: "tool", content: [...last.content, result] };
    else sent.push({ role: "tool", content: [result] });
  }
  return sent;
}

function providerMessage(message: Exclude<FormedMessage, { role: "tool" }>, rules: ImageRules): ProviderMessage {
  if (message.role === "system") return { role: "system", content: message.text };
  if (message.role === "user") return { role: "user", content: message.parts.map((part) => userPart(part, rules)) };
  return { role: "assistant", content: answerParts(message) };
}

function userPart(part: ContentPart, rules: ImageRules): TextPart | FilePart {
  if (part.type === "text") return part;
  const { specification } = rules;
  const isV3 = specification === "v3";
  const embedded = /^data:([^;,]*)(?:;[^,]*)?;base64,(.*)$/s.exec(part.url);
  if (embedded) {
    const [, mediaType = "", data = ""] = embedded;
    return {
      type: "file",
      mediaType: mediaType === "" ? "image/*" : mediaType,
      data: isV3 ? data : { type: "data", data },
    };
  }
  if (!URL.canParse(part.url) || !isFetched(part.url, rules)) throw notFetched(part.url);
  const url = new URL(part.url);
  return { type: "file", mediaType: "image/*", data: isV3 ? url : { type: "url", url } };
}

function isFetched(url: string, { supportedUrls }: ImageRules): boolean {
  return Object.entries(supportedUrls).some(
    ([type, patterns]) =>
      (type.startsWith("image/") || type.startsWith("*")) && patterns.some((pattern) => url.search(pattern) >= 0),
  );
}

function notFetched(url: string): ModelError {
  const shown = url.length > 100 ? `${url.slice(0, 100)}…` : url;
  return new ModelError(
    `The image ${shown} was not sent: this provider fetches no images of that address. Give the image as a data: URL.`,
    { retryable: false, mayHaveBeenSent: false, details: { kind: "configuration" } },
  );
}

/**
 * The parts of an answer in the order in which its model wrote them, with the provider's options. They are sent back only if the
 * message still has the text and the calls that the parts describe; a hook may have changed it.
 */
function answerParts(answer: FormedAnswer): readonly (TextPart | ReasoningPart | ToolCallPart)[] {
  return writtenParts(answer) ?? plainParts(answer);
}

function plainParts({ text, calls }: FormedAnswer): readonly (TextPart | ToolCallPart)[] {
  return [...(text === "" ? [] : [{ type: "text", text } as const]), ...calls.map((call) => callPart(call, undefined))];
}

function writtenParts({ text, calls, reasoning }: FormedAnswer) {
  const stored = wireArray(reasoning?.["parts"]).map((part) => wireObject(part) ?? {});
  if (stored.length === 0) return undefined;
  const parts: (TextPart | ReasoningPart | ToolCallPart)[] = [];
  const left = new Map(calls.map((call) => [call.providerId, call]));
  let at = 0;
  for (const part of stored) {
    const options = optionsOfPart(part["options"]);
    if (part["type"] === "reasoning") parts.push({ type: "reasoning", text: wireText(part["text"]), ...options });
    else if (part["type"] === "text") {
      const length = Number(part["length"]);
      if (at + length > text.length) return undefined;
      parts.push({ type: "text", text: text.slice(at, at + length), ...options });
      at += length;
    } else {
      const call = left.get(wireText(part["id"]));
      if (call === undefined) return undefined;
      left.delete(call.providerId);
      parts.push(callPart(call, options.providerOptions));
    }
  }
  return at === text.length && left.size === 0 ? parts : undefined;
}

function callPart(
  { id, name, arguments: text }: FormedAnswer["calls"][number],
  providerOptions: ProviderOptions | undefined,
): ToolCallPart {
  const own = providerOptions === undefined ? {} : { providerOptions };
  return { type: "tool-call", toolCallId: id, toolName: name, input: wireJson(text), ...own };
}

function optionsOfPart(options: unknown): { readonly providerOptions?: ProviderOptions } {
  const known = wireObject(options);
  return known === undefined ? {} : { providerOptions: known as Readonly<Record<string, JsonObject>> };
}
