// The Chat Completions protocol, as OpenAI, Groq, DeepSeek, Mistral and OpenRouter document it.
import { halves, serverEvent, unusableCount, wireUsage, type WireEnd, type WireFormat } from "./wire-format.ts";

interface ChatDialect {
  readonly ends: readonly WireEnd[];
  /** The fields of a delta for a piece of a thought. */
  readonly thought: (piece: string) => object;
  /** The fields of a delta that ends a thought, if there are any. */
  readonly thoughtEnd?: (thought: string) => object;
  /** Where the usage is: in a chunk of its own, in the last chunk, or in a field of the last chunk. */
  readonly usageIn?: "last chunk" | "x_groq";
  /** Whether each call comes in one piece. */
  readonly wholeCalls?: true;
  readonly error: (message: string) => object;
  readonly refusal: WireFormat["refusal"];
}

const finishReasons = { stop: "stop", length: "length", filter: "content_filter", refusal: "stop" } as const;

function chatFormat(dialect: ChatDialect): WireFormat {
  return {
    contentType: "text/event-stream",
    ends: dialect.ends,
    refusal: dialect.refusal,
    events: ({ thought, text, calls = [], end = "stop", usage, error, unknown }) => {
      const head = { id: "chat_1", object: "chat.completion.chunk", created: 1, model: "model-test" };
      const chunks: object[] = [];
      const delta = (fields: object): void => {
        chunks.push({ ...head, choices: [{ index: 0, delta: fields, finish_reason: null }] });
      };
      delta({ role: "assistant", content: "" });
      for (const piece of halves(thought)) delta(dialect.thought(piece));
      if (thought !== undefined && dialect.thoughtEnd !== undefined) delta(dialect.thoughtEnd(thought));
      for (const piece of halves(text)) delta(end === "refusal" ? { refusal: piece } : { content: piece });
      for (const [index, { id, name, arguments: args }] of calls.entries()) {
        const all = JSON.stringify(args);
        const begun = { index, id, type: "function" };
        if (dialect.wholeCalls) delta({ tool_calls: [{ ...begun, function: { name, arguments: all } }] });
        else {
          delta({ tool_calls: [{ ...begun, function: { name, arguments: "" } }] });
          for (const piece of halves(all)) delta({ tool_calls: [{ index, function: { arguments: piece } }] });
        }
      }
      if (unknown) delta({ note_of_next_year: { text: "new" } });
      if (error !== undefined) {
        chunks.push(dialect.error(error));
        return chunks.map((chunk) => serverEvent(chunk));
      }
      const reason = end === "stop" && calls.length > 0 ? "tool_calls" : finishReasons[end];
      const last = { ...head, choices: [{ index: 0, delta: {}, finish_reason: reason }] };
      const told = usage === "none" ? undefined : counts(usage);
      if (told === undefined) chunks.push(last);
      else if (dialect.usageIn === "last chunk") chunks.push({ ...last, usage: told });
      else if (dialect.usageIn === "x_groq") chunks.push({ ...last, x_groq: { id: "req_1", usage: told } });
      else chunks.push(last, { ...head, choices: [], usage: told });
      const events = chunks.map((chunk) => serverEvent(chunk));
      return [...(unknown ? [": a comment\n\n"] : []), ...events, serverEvent("[DONE]")];
    },
  };
}

function counts(usage: "unusable" | undefined): object {
  if (usage === "unusable") {
    const { huge, negative } = unusableCount;
    return { prompt_tokens: huge, completion_tokens: negative, total_tokens: huge };
  }
  return {
    prompt_tokens: wireUsage.input,
    completion_tokens: wireUsage.output,
    total_tokens: wireUsage.input + wireUsage.output,
    prompt_cache_hit_tokens: wireUsage.cached,
    prompt_tokens_details: { cached_tokens: wireUsage.cached },
    completion_tokens_details: { reasoning_tokens: wireUsage.reasoning },
  };
}

const openaiTypes: Readonly<Record<number, string>> = { 429: "rate_limit_exceeded", 500: "server_error" };
const openaiRefusal: WireFormat["refusal"] = ({
  status,
  message,
  type = openaiTypes[status] ?? "invalid_request_error",
}) => ({ body: { error: { message, type, param: null, code: null } }, headers: { "x-request-id": "req_1" } });

export const openaiChatFormat = chatFormat({
  ends: ["stop", "length", "filter", "refusal"],
  // OpenAI sends no thoughts; servers of open models use this field.
  thought: (piece) => ({ reasoning_content: piece }),
  error: (message) => ({ error: { message, type: "server_error", param: null, code: null } }),
  refusal: openaiRefusal,
});

export const deepseekFormat = chatFormat({
  ends: ["stop", "length", "filter"],
  thought: (piece) => ({ content: null, reasoning_content: piece }),
  error: (message) => ({ error: { message, type: "server_error", param: null, code: null } }),
  refusal: openaiRefusal,
});

export const groqFormat = chatFormat({
  ends: ["stop", "length"],
  thought: (piece) => ({ reasoning: piece }),
  usageIn: "x_groq",
  wholeCalls: true,
  error: (message) => ({ error: { message, type: "service_unavailable" } }),
  refusal: ({ status, message, type = openaiTypes[status] ?? "invalid_request_error" }) => ({
    body: { error: { message, type } },
  }),
});

export const openrouterFormat = chatFormat({
  ends: ["stop", "length", "filter"],
  thought: (piece) => ({ content: "", reasoning: piece, reasoning_details: [openrouterDetail(piece)] }),
  thoughtEnd: (thought) => ({
    content: "",
    reasoning_details: [{ ...openrouterDetail(""), signature: `signature of ${thought}` }],
  }),
  error: (message) => ({ id: "chat_1", error: { code: 502, message }, choices: [] }),
  refusal: ({ status, message }) => ({ body: { error: { code: status, message } } }),
});

function openrouterDetail(text: string) {
  return { type: "reasoning.text", text, format: "anthropic-claude-v1", index: 0 };
}

export const mistralFormat = chatFormat({
  ends: ["stop", "length"],
  thought: (piece) => ({ content: [{ type: "thinking", thinking: [{ type: "text", text: piece }] }] }),
  usageIn: "last chunk",
  wholeCalls: true,
  error: (message) => ({ object: "error", message, type: "internal_server_error", param: null, code: "1000" }),
  refusal: ({ message, type = "invalid_request_error" }) => ({
    body: { object: "error", message, type, param: null, code: null },
  }),
});
