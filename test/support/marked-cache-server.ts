import { createAnthropic } from "@ai-sdk/anthropic";
import { onTestFinished } from "vitest";
import { startRawServer } from "./raw-server.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What one request read from the cache, wrote to it, and neither. In tokens of eight characters. */
export interface CachedCall {
  readonly read: number;
  readonly written: number;
  readonly rest: number;
  /** Number of blocks with a mark. */
  readonly marks: number;
}

/** Anthropic compares this many blocks before each mark with what it has cached. */
const LOOKBACK = 20;
const MOST_MARKS = 4;

interface Block {
  readonly text: string;
  readonly isMarked: boolean;
  readonly ttl: string;
}

/**
 * A server of Anthropic's Messages API that caches prompts as the documentation describes it: prefixes end at marks, and are found again
 * byte for byte. It refuses a fifth mark. `answer` decides by the number of the request whether the model calls its tool again.
 */
export async function markedCacheServer(answer: (index: number) => "call" | "text") {
  const calls: CachedCall[] = [];
  const bodies: Fields[] = [];
  const cache = new Set<string>();
  const server = await startRawServer((_request, response, body) => {
    const asked = JSON.parse(body) as Fields;
    bodies.push(asked);
    const blocks = blocksOf(asked);
    const marks = blocks.filter(({ isMarked }) => isMarked).length;
    if (marks > MOST_MARKS) {
      response.writeHead(400, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: "too many marks" } }),
      );
      return;
    }
    const usage = usageOf(blocks, cache);
    calls.push({ ...usage, marks });
    const isLong = blocks.some(({ ttl }) => ttl === "1h");
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of eventsOf(usage, { isLong, ends: answer(calls.length - 1), index: calls.length })) {
      response.write(`data: ${JSON.stringify(event)}\n\n`);
    }
    response.end();
  });
  onTestFinished(() => server.stop());
  const model = createAnthropic({ baseURL: `${server.origin}/v1`, apiKey: "key-for-tests" })("claude-test");
  return { model, calls, bodies };
}

/** Tools, system and messages, in the order in which they are cached. Marks are no part of what is compared. */
function blocksOf(body: Fields): Block[] {
  const messages = listOf(body["messages"]).flatMap((message) =>
    listOf(message["content"]).map((block): Fields => ({ ...block, role: message["role"] })),
  );
  return [...listOf(body["tools"]), ...listOf(body["system"]), ...messages].map(
    ({ cache_control: mark, ...block }) => ({
      text: JSON.stringify(block),
      isMarked: mark !== undefined,
      ttl: (mark as { ttl?: string } | undefined)?.ttl ?? "5m",
    }),
  );
}

function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? (value as readonly Fields[]) : [];
}

function usageOf(blocks: readonly Block[], cache: Set<string>): Omit<CachedCall, "marks"> {
  const prefixes = blocks.map((_, index) =>
    blocks
      .slice(0, index + 1)
      .map(({ text }) => text)
      .join("\n"),
  );
  const marked = blocks.flatMap(({ isMarked }, index) => (isMarked ? index : []));
  const found = marked.flatMap((mark) => {
    const near = prefixes.slice(Math.max(0, mark - LOOKBACK), mark + 1);
    return near.filter((prefix) => cache.has(prefix)).map(tokensOf);
  });
  for (const mark of marked) cache.add(prefixes[mark] ?? "");
  const read = Math.max(0, ...found);
  const last = tokensOf(prefixes[marked.at(-1) ?? -1] ?? "");
  const all = tokensOf(prefixes.at(-1) ?? "");
  return { read, written: Math.max(0, last - read), rest: Math.max(1, all - Math.max(last, read)) };
}

function tokensOf(text: string): number {
  return Math.ceil(text.length / 8);
}

interface Answer {
  readonly isLong: boolean;
  readonly ends: "call" | "text";
  readonly index: number;
}

function eventsOf({ read, written, rest }: Omit<CachedCall, "marks">, { isLong, ends, index }: Answer): object[] {
  const lifetimes = {
    ephemeral_5m_input_tokens: isLong ? 0 : written,
    ephemeral_1h_input_tokens: isLong ? written : 0,
  };
  const usage = {
    input_tokens: rest,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    cache_creation: lifetimes,
    output_tokens: 1,
  };
  const message = { id: `msg_${index}`, type: "message", role: "assistant", model: "claude-test", content: [], usage };
  const isCall = ends === "call";
  const block = isCall
    ? { type: "tool_use", id: `toolu_${index}`, name: "look", input: {} }
    : { type: "text", text: "" };
  const delta = isCall
    ? { type: "input_json_delta", partial_json: JSON.stringify({ at: index }) }
    : { type: "text_delta", text: `Answer ${index}.` };
  return [
    { type: "message_start", message: { ...message, stop_reason: null } },
    { type: "content_block_start", index: 0, content_block: block },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: isCall ? "tool_use" : "end_turn", stop_sequence: null },
      usage: { output_tokens: 10 },
    },
    { type: "message_stop" },
  ];
}
