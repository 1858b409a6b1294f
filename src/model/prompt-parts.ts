import { type Content, type Message, type ModelRequest, type ModelTool, textOf } from "../state/index.ts";
import { sentArguments, toolImagesCaption } from "./openai-wire.ts";
import { sentId, sentName } from "./wire-calls.ts";

/**
 * Tokens assumed for an image. Covers high detail in current models, except `gpt-4o-mini`, which counts up to 48,169.
 */
export const imageTokenBound = 2_500;

/** The overhead that providers add to each message: role, separators. OpenAI's is 4. */
const messageOverhead = 8;
/** The overhead of a call in the history or a tool in the list: JSON punctuation and keys. */
const entryOverhead = 32;
/** The text that providers put before a list of tools; the longest published one is 346. */
const toolsOverhead = 400;
/** The tokens that open the answer. */
const answerOverhead = 8;

/** A piece of a prompt, and the object that its text comes from. */
export interface PromptPart {
  readonly owner: object;
  readonly text: () => string;
}

/** All texts of a prompt that messages and tools hold. */
export function* promptParts(request: ModelRequest): Generator<PromptPart> {
  for (const message of request.messages) yield { owner: message, text: () => messageText(message) };
  for (const tool of request.tools ?? []) yield { owner: tool, text: () => toolText(tool) };
}

/** The tokens of a prompt besides its texts. */
export function fixedTokens(request: ModelRequest, imageTokens: number): number {
  const tools = request.tools?.length ?? 0;
  let tokens = answerOverhead + (tools === 0 ? 0 : toolsOverhead + tools * entryOverhead);
  for (const message of request.messages) {
    const images = imageCount(message.content);
    tokens += messageOverhead + images * imageTokens;
    // Images of a tool's result are sent in a separate message.
    if (message.role === "tool" && images > 0) tokens += messageOverhead;
    if (message.role === "assistant") tokens += (message.toolCalls?.length ?? 0) * entryOverhead;
  }
  return tokens;
}

/** The schema that the answer has to fit, as text. */
export function formatText({ responseFormat }: ModelRequest): string {
  return responseFormat?.type === "json_schema" ? JSON.stringify(responseFormat) : "";
}

function imageCount(content: Content): number {
  if (typeof content === "string") return 0;
  return content.reduce((count, part) => (part.type === "image" ? count + 1 : count), 0);
}

function messageText(message: Message): string {
  let text = textOf(message.content);
  if (message.role === "tool") {
    const id = sentId(message);
    return text + id + (imageCount(message.content) === 0 ? "" : toolImagesCaption(id));
  }
  if (message.role !== "assistant") return text;
  for (const call of message.toolCalls ?? []) text += sentId(call) + sentName(call.name) + sentArguments(call);
  return message.reasoning === undefined ? text : text + JSON.stringify(message.reasoning);
}

function toolText(tool: ModelTool): string {
  return tool.name + tool.description + JSON.stringify(tool.parameters);
}
