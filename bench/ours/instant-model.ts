import type { LanguageModel, ModelRequest, ModelResponse } from "../../src/index.ts";
import { answerText } from "../model-answers.ts";

/**
 * A model in this process that answers at once: first `steps` - 1 calls of the tool `lookup`, then the text. Without HTTP,
 * only troupe itself is measured, so a ratio of two troupe figures is larger than over HTTP.
 */
export function instantModel(steps: number): LanguageModel {
  const name = `instant-${steps}`;
  const usage = { inputTokens: 40, outputTokens: 20 };
  const answer = (request: ModelRequest): ModelResponse => {
    const done = resultsOfTurn(request);
    const isLast = done === steps - 1;
    const call = { id: `call_${done}`, name: "lookup", arguments: `{"key":"key-${done}"}` };
    return {
      content: isLast ? answerText : "",
      toolCalls: isLast ? [] : [call],
      usage,
      finishReason: isLast ? "stop" : "tool_calls",
      model: name,
    };
  };
  return {
    name,
    provider: "bench",
    countPromptTokens: () => usage.inputTokens,
    generate: async (request) => answer(request),
  };
}

/** Number of tool messages after the last user message. */
function resultsOfTurn({ messages }: ModelRequest): number {
  let results = 0;
  for (let index = messages.length - 1; index >= 0 && messages[index]?.role !== "user"; index -= 1) {
    if (messages[index]?.role === "tool") results += 1;
  }
  return results;
}
