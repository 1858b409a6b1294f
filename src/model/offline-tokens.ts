import { type Message, type ModelRequest, type ModelTool, textOf } from "../state/index.ts";

const perMessage = 4;
const charactersPerToken = 7;
const messageOverheadBytes = 64;
const toolOverheadBytes = 64;

/** Tokens of a text, roughly: short words and runs of one sign are one, long words one per 7 characters; never more than its bytes. */
export function countTokens(text: string): number {
  let count = 0;
  for (const [piece] of text.matchAll(/[A-Za-z]+|\d{1,3}|([^\sA-Za-z\d])\1*/gu)) {
    count +=
      piece.charCodeAt(0) < 128
        ? Math.ceil(piece.length / charactersPerToken)
        : Math.ceil(Buffer.byteLength(piece) / 3);
  }
  return count;
}

/** Tokens of all that a request sends; an estimate, at most `promptBytes`. */
export function countRequestTokens(request: ModelRequest): number {
  const messages = request.messages.reduce(
    (sum, message) => sum + perMessage + textsOf(message).reduce((tokens, text) => tokens + countTokens(text), 0),
    0,
  );
  const tools = (request.tools ?? []).reduce(
    (sum, tool) =>
      sum + perMessage + countTokens(tool.name) + countTokens(tool.description) + countTokens(schemaText(tool)),
    0,
  );
  return messages + tools;
}

/** Upper bound of a request's tokens: a byte-level tokeniser never has more tokens than there are UTF-8 bytes. */
export function promptBytes(request: ModelRequest): number {
  const messages = request.messages.reduce(
    (sum, message) =>
      sum + messageOverheadBytes + textsOf(message).reduce((bytes, text) => bytes + Buffer.byteLength(text), 0),
    0,
  );
  const tools = (request.tools ?? []).reduce(
    (sum, tool) =>
      sum +
      toolOverheadBytes +
      Buffer.byteLength(tool.name) +
      Buffer.byteLength(tool.description) +
      Buffer.byteLength(schemaText(tool)),
    0,
  );
  const format = request.responseFormat === undefined ? 0 : Buffer.byteLength(JSON.stringify(request.responseFormat));
  return messages + tools + format;
}

function textsOf(message: Message): string[] {
  const texts = [textOf(message.content)];
  if (message.role === "assistant") {
    for (const call of message.toolCalls ?? []) texts.push(call.name, call.arguments, call.providerId);
    if (message.reasoning !== undefined) texts.push(JSON.stringify(message.reasoning));
  }
  if (message.role === "tool") texts.push(message.providerId);
  if (typeof message.content !== "string")
    for (const part of message.content) if (part.type === "image") texts.push(part.url);
  return texts;
}

const schemaTexts = new WeakMap<object, string>();

/** A tool's schema is the same object call after call: it is written out once. */
function schemaText(tool: ModelTool): string {
  const known = schemaTexts.get(tool.parameters);
  if (known !== undefined) return known;
  const text = JSON.stringify(tool.parameters);
  schemaTexts.set(tool.parameters, text);
  return text;
}
