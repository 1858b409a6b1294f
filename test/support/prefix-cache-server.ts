import { startModelServer, type ModelServer, type WireRequestBody } from "./model-server.ts";

/** Tokens of a provider's cache are counted in bytes: four are one token. */
const BYTES_PER_TOKEN = 4;
/** Providers cache no shorter prefixes. */
const SHORTEST = 1_024;

/** A server of Chat Completions that reads the longest prefix it has seen from its cache: tools first, then the messages. */
export async function startPrefixCacheServer(): Promise<ModelServer> {
  const seen: string[] = [];
  return await startModelServer((body, { index }) => {
    const text = prefixText(body);
    const shared = Math.max(0, ...seen.map((before) => sharedLength(before, text)));
    seen.push(text);
    const cached = Math.floor(shared / BYTES_PER_TOKEN);
    const usage = {
      inputTokens: Math.ceil(text.length / BYTES_PER_TOKEN),
      outputTokens: 10,
      cachedInputTokens: cached < SHORTEST ? 0 : cached,
    };
    return { text: `Answer ${index}.`, usage };
  });
}

function prefixText({ tools = [], messages }: WireRequestBody): string {
  return [...tools, ...messages].map((part) => JSON.stringify(part)).join("\n");
}

function sharedLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}
