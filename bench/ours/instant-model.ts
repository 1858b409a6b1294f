import type { LanguageModel, ModelRequest, ModelResponse } from "../../src/index.ts";
import { answerText } from "../model-answers.ts";

/**
 * A model inside this process that answers at once: after `steps` - 1 calls of the tool `lookup`, the text. What is measured
 * with it is ours alone, without HTTP; a ratio of two of ours is therefore harsher than over the wire.
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

/** Tool messages after the last message of the user. */
function resultsOfTurn({ messages }: ModelRequest): number {
  let results = 0;
  for (let index = messages.length - 1; index >= 0 && messages[index]?.role !== "user"; index -= 1) {
    if (messages[index]?.role === "tool") results += 1;
  }
  return results;
}
