import { AnswerAccumulator } from "./accumulator.ts";
import type { OpenaiApi } from "./openai-backend.ts";
import { fieldsOfProvider } from "./openai-fields.ts";
import { chatFields, type WireOptions, wireBody } from "./openai-wire.ts";

/** Chat Completions, as OpenAI and compatible servers speak it. */
export function chatApi(options: Omit<WireOptions, "stream" | "reader">): OpenaiApi {
  return {
    path: "/chat/completions",
    fixedFormat: (request, reader) => {
      const isSet = "response_format" in { ...options.extraBody, ...fieldsOfProvider(request, reader, chatFields) };
      return isSet ? "prompt" : undefined;
    },
    body: (request, { reader, stream }) => wireBody(request, { ...options, reader, stream }),
    answer: () => new AnswerAccumulator(),
  };
}
