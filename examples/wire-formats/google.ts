// The Gemini API of Google: `streamGenerateContent` as server-sent events.
import { halves, serverEvent, unusableCount, wireUsage, type WireFormat } from "./wire-format.ts";

const finishReasons = { stop: "STOP", length: "MAX_TOKENS", filter: "SAFETY", refusal: "PROHIBITED_CONTENT" } as const;
const statuses: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
};

export const googleFormat: WireFormat = {
  contentType: "text/event-stream",
  ends: ["stop", "length", "filter", "refusal"],
  events: ({ thought, text, calls = [], end = "stop", usage, error, unknown, executed }) => {
    const events: object[] = [];
    const chunk = (...parts: readonly object[]): void => {
      events.push({ candidates: [{ content: { role: "model", parts }, index: 0 }], modelVersion: "gemini-test" });
    };
    for (const piece of halves(thought)) chunk({ text: piece, thought: true });
    // The signature of a thought is on the part that follows it.
    let signature = thought === undefined ? {} : { thoughtSignature: `signature of ${thought}` };
    const signed = (part: object): object => {
      const whole = { ...part, ...signature };
      signature = {};
      return whole;
    };
    for (const piece of halves(text)) chunk(signed({ text: piece }));
    if (executed !== undefined) chunk({ toolCall: { toolType: executed, args: {}, id: "server_1" } });
    for (const { name, arguments: args } of calls) chunk(signed({ functionCall: { name, args } }));
    if (unknown) events.push({ noteOfNextYear: { text: "new" } });
    if (error !== undefined) events.push({ error: { code: 503, message: error, status: "UNAVAILABLE" } });
    else {
      const last = {
        candidates: [{ content: { role: "model", parts: [] }, finishReason: finishReasons[end], index: 0 }],
        modelVersion: "gemini-test",
      };
      events.push(usage === "none" ? last : { ...last, usageMetadata: counts(usage, thought !== undefined) });
    }
    return events.map((event) => serverEvent(event));
  },
  refusal: ({ status, message, type = statuses[status] ?? "UNKNOWN" }) => ({
    body: { error: { code: status, message, status: type } },
  }),
};

function counts(usage: "unusable" | undefined, hasThought: boolean): object {
  if (usage === "unusable") {
    return { promptTokenCount: unusableCount.huge, candidatesTokenCount: unusableCount.negative };
  }
  const thoughtsTokenCount = hasThought ? wireUsage.reasoning : 0;
  return {
    promptTokenCount: wireUsage.input,
    cachedContentTokenCount: wireUsage.cached,
    candidatesTokenCount: wireUsage.output - thoughtsTokenCount,
    thoughtsTokenCount,
    totalTokenCount: wireUsage.input + wireUsage.output,
  };
}
