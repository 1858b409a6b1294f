import { OpenAI } from "openai";
import { type LanguageModel, type ModelDelta, openaiModel, type OpenaiModelOptions } from "../../src/model/index.ts";
import { ModelError } from "../../src/errors/index.ts";
import type { ModelRequest, ModelResponse, UserMessage } from "../../src/state/index.ts";
import { type RawServer, startRawServer } from "./raw-server.ts";

export function userMessage(content: UserMessage["content"]): UserMessage {
  return { role: "user", id: "message-1", createdAt: 1, content, origin: "user" };
}

export const request: ModelRequest = { messages: [userMessage("Say hello")] };

export const neverAborted = new AbortController().signal;

/** The failure of a call that must fail. */
export async function failureOf(call: Promise<unknown>): Promise<ModelError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ModelError) return error;
    throw error;
  }
  throw new Error("the call succeeded, but was expected to fail");
}

/** Runs a streamed call and records the reported pieces. */
export async function streamed(
  model: LanguageModel,
  signal = neverAborted,
): Promise<{ readonly answer: ModelResponse; readonly deltas: readonly ModelDelta[] }> {
  const deltas: ModelDelta[] = [];
  // The number of pieces depends on how the connection delivers them.
  const onDelta = (delta: ModelDelta): void => {
    const last = deltas.at(-1);
    if (!last || last.type !== delta.type || !isSameCall(last, delta)) deltas.push(delta);
    else deltas[deltas.length - 1] = { ...delta, text: deltaText(last) + deltaText(delta) } as ModelDelta;
  };
  const answer = await model.generate(request, { signal, onDelta });
  return { answer, deltas };
}

/** The text of a delta; a call's name has none. */
export function deltaText(delta: ModelDelta): string {
  return delta.type === "tool-call" ? "" : delta.text;
}

function isSameCall(a: ModelDelta, b: ModelDelta): boolean {
  if (a.type === "tool-call" || b.type === "tool-call") return false;
  return !("index" in a) || !("index" in b) || a.index === b.index;
}

/** One event of a stream. */
export function event(data: object | string): string {
  return `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
}

/** A chunk with one choice. */
export function chunk(delta: object, finish_reason: string | null = null): string {
  return event({ id: "c1", model: "served", choices: [{ index: 0, delta, finish_reason }] });
}

export const usageChunk = event({ id: "c1", choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } });
export const done = event("[DONE]");

/** The options of a model that choose how its requests are sent. */
export type Way = (options: OpenaiModelOptions) => OpenaiModelOptions;

/** Through a client that the user has created with the same options. */
export const throughClient: Way = ({ apiKey, baseURL, headers, organization, fetch, ...options }) => ({
  ...options,
  client: new OpenAI({ apiKey, baseURL, organization, defaultHeaders: headers, fetch }),
});

/** All kinds of connection over which a request can be sent. */
export const ways: readonly (readonly [string, Way])[] = [
  ["its own connections", (options) => options],
  ["a fetch of the user", (options) => ({ fetch: globalThis.fetch, ...options })],
  ["a client of the user", throughClient],
];

const open = new Set<RawServer>();

/** A model whose server writes exactly these bytes. Their content type matches their format by default: events, or one JSON text. */
export async function modelSending(
  body: string,
  options: OpenaiModelOptions = {},
  { over, type = /^(data|event)?:/.test(body) ? "text/event-stream" : "application/json" }: SendingOptions = {},
): Promise<LanguageModel> {
  const server = await startRawServer((_request, response) => {
    response.writeHead(200, { "content-type": type });
    response.end(body);
  });
  return modelAt(server, options, over);
}

interface SendingOptions {
  readonly over?: Way;
  readonly type?: string;
}

/** A model with a server that is stopped after the test. */
export function modelAt(
  server: RawServer,
  options: OpenaiModelOptions = {},
  over: Way = (given) => given,
): LanguageModel {
  open.add(server);
  return openaiModel("requested", over({ apiKey: "secret-key", baseURL: `${server.origin}/v1`, ...options }));
}

export async function stopServers(): Promise<void> {
  await Promise.all([...open].map((server) => server.stop()));
  open.clear();
}
