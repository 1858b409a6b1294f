import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { steadyNow } from "../witness.ts";

/** The words of every answer, and the milliseconds between two words: two and a half seconds in all. */
const WORDS = 50;
const WORD_MS = 50;
/** The last word of an answer. */
export const lastWord = `word-${WORDS - 1}.`;

/** A model that sends its answers word by word. */
export interface SlowModel {
  readonly baseURL: string;
  /** When each call began, by `steadyNow`. */
  readonly calls: number[];
  close(): Promise<void>;
}

export async function startSlowModel(): Promise<SlowModel> {
  const calls: number[] = [];
  const server = createServer((request, response) => {
    calls.push(steadyNow());
    request.resume();
    void answer(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { baseURL: `http://127.0.0.1:${port}/v1`, calls, close };
}

async function answer(response: ServerResponse): Promise<void> {
  const chunk = { id: "answer", object: "chat.completion.chunk", created: 1, model: "slow" };
  const send = (part: object): void => void response.write(`data: ${JSON.stringify({ ...chunk, ...part })}\n\n`);
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (let word = 0; word < WORDS && !response.destroyed; word += 1) {
    const content = word === WORDS - 1 ? lastWord : `word-${word} `;
    send({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
    await delay(WORD_MS);
  }
  const usage = { prompt_tokens: 5, completion_tokens: WORDS, total_tokens: WORDS + 5 };
  send({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage });
  response.end("data: [DONE]\n\n");
}
