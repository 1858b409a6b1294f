import { ModelError } from "../../errors/index.ts";
import { dataOf, type FilePart as ContentFile, type JsonObject, type ProviderOptions } from "../../state/index.ts";
import type { FormedAnswer, FormedMessage, MediaPart } from "../prompt-form.ts";
import { wireArray, wireJson, wireObject, wireText } from "../wire-values.ts";
import type {
  AiSdkLanguageModel,
  FilePart,
  ProviderMessage,
  ReasoningPart,
  ResultPartV3,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from "./provider-model.ts";

/** How images and files are sent to one model. */
export interface MediaRules {
  readonly specification: AiSdkLanguageModel["specificationVersion"];
  /** URLs that the provider fetches itself, by media type. */
  readonly supportedUrls: Readonly<Record<string, readonly RegExp[]>>;
}

/** Providers whose package sends images only, and leaves out other files. */
const imagesOnly = /^(?:deepseek|ollama)\b/;

/** Whether a provider may accept the file; one that does not refuses it before it sends anything. */
export function isProviderFile({ mediaType }: Pick<ContentFile, "mediaType">, provider: string): boolean {
  if (imagesOnly.test(provider)) return mediaType.startsWith("image/");
  return mediaType === "application/pdf" || /^(?:audio|video|image)\//.test(mediaType);
}

/** Providers whose package translates images, and perhaps PDFs, in tool results. Others would send them as text. */
const inResults: readonly { readonly provider: RegExp; readonly takes: RegExp }[] = [
  { provider: /anthropic/, takes: /^(?:image\/|application\/pdf$)/ },
  { provider: /^(?:openai|azure[\w-]*)\.responses$/, takes: /^(?:image\/|application\/pdf$)/ },
  { provider: /bedrock/, takes: /^image\// },
];

/** Whether a provider takes an image or a file in a tool result. A failed result is a text: only that is marked as failed. */
export function takesInResultOf(
  provider: string,
): (part: MediaPart, result: { readonly isError?: boolean | undefined }) => boolean {
  const known = inResults.find((one) => one.provider.test(provider));
  if (known === undefined) return () => false;
  return (part, { isError }) =>
    isError !== true && known.takes.test(part.type === "image" ? "image/*" : part.mediaType);
}

/** @throws ModelError of kind `configuration` for an image or a file that the provider cannot fetch. */
export function providerPrompt(messages: readonly FormedMessage[], rules: MediaRules): readonly ProviderMessage[] {
  const sent: ProviderMessage[] = [];
  for (const message of messages) {
    if (message.role !== "tool") {
      sent.push(providerMessage(message, rules));
      continue;
    }
    const { id: toolCallId, name: toolName } = message;
    const result = { type: "tool-result", toolCallId, toolName, output: resultOutput(message, rules) } as const;
    const last = sent.at(-1);
    if (last?.role === "tool") sent[sent.length - 1] = { role: "tool", content: [...last.content, result] };
    else sent.push({ role: "tool", content: [result] });
  }
  return sent;
}

/** The prompt with its calls and their results as texts of the user, for providers that take neither without tools. */
export function withCallsAsText(messages: readonly FormedMessage[]): readonly FormedMessage[] {
  const calls = new Map<string, string>();
  return messages.flatMap((message): readonly FormedMessage[] => {
    if (message.role === "tool") {
      const text = `Result of the tool call ${calls.get(message.id) ?? message.name}:\n${message.text}`;
      return [{ role: "user", parts: [{ type: "text", text }, ...message.parts] }];
    }
    if (message.role !== "assistant") return [message];
    for (const { id, name, arguments: given } of message.calls) calls.set(id, `${name}(${given})`);
    return message.text === "" ? [] : [{ role: "assistant", text: message.text, calls: [] }];
  });
}

function resultOutput(
  { text, parts, isError }: Extract<FormedMessage, { role: "tool" }>,
  rules: MediaRules,
): ToolResultPart["output"] {
  if (parts.length === 0) return { type: isError ? "error-text" : "text", value: text };
  const media = parts.map((part) => {
    const file = filePart(part, rules);
    return rules.specification === "v4" ? file : resultPartV3(file);
  });
  return { type: "content", value: [{ type: "text", text }, ...media] };
}

function resultPartV3({ data, mediaType }: FilePart): ResultPartV3 {
  const kind = mediaType.startsWith("image/") ? "image" : "file";
  if (data instanceof URL) return { type: `${kind}-url`, url: data.href };
  return { type: `${kind}-data`, data: typeof data === "string" ? data : "", mediaType };
}

function providerMessage(message: Exclude<FormedMessage, { role: "tool" }>, rules: MediaRules): ProviderMessage {
  if (message.role === "system") return { role: "system", content: message.text };
  if (message.role === "user") {
    return {
      role: "user",
      content: message.parts.map((part) => (part.type === "text" ? part : filePart(part, rules))),
    };
  }
  return { role: "assistant", content: answerParts(message) };
}

function filePart(part: MediaPart, rules: MediaRules): FilePart {
  const { url = "" } = part;
  const isV3 = rules.specification === "v3";
  const named = part.type === "file" && part.name !== undefined ? { filename: part.name } : {};
  const known = part.type === "file" ? part.mediaType : undefined;
  const embedded = dataOf(url);
  if (embedded !== undefined) {
    const mediaType = known ?? /^data:([^;,]+)/.exec(url)?.[1] ?? "image/*";
    return { type: "file", mediaType, ...named, data: isV3 ? embedded : { type: "data", data: embedded } };
  }
  const mediaType = known ?? imageTypeOf(url);
  if (!URL.canParse(url) || !isFetched(url, mediaType, rules)) throw notFetched(part.type, url);
  return { type: "file", mediaType, ...named, data: isV3 ? new URL(url) : { type: "url", url: new URL(url) } };
}

/** The media type by the ending of an address: some packages send no address whose subtype is not known. */
function imageTypeOf(url: string): string {
  const [, ending = ""] = /\.(png|jpe?g|gif|webp)(?:[?#]|$)/i.exec(url) ?? [];
  const subtype = ending.toLowerCase();
  return subtype === "" ? "image/*" : `image/${subtype === "jpg" ? "jpeg" : subtype}`;
}

function isFetched(url: string, mediaType: string, { supportedUrls }: MediaRules): boolean {
  const [kind = ""] = mediaType.split("/", 1);
  return Object.entries(supportedUrls).some(([type, patterns]) => {
    const fits =
      type.startsWith("*") ||
      type === mediaType ||
      type === `${kind}/*` ||
      (kind === "image" && type.startsWith("image/"));
    return fits && patterns.some((pattern) => url.search(pattern) >= 0);
  });
}

function notFetched(what: MediaPart["type"], url: string): ModelError {
  // The query of an address may be a signature, and a data: URL is content.
  const [shown = ""] = (url.startsWith("data:") ? "data:" : url.slice(0, 100)).split("?");
  return new ModelError(
    `The ${what} ${shown} was not sent: this provider fetches no ${what}s of that address. Give the ${what} as a data: URL.`,
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
