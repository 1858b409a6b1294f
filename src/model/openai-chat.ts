import { AnswerAccumulator } from "./accumulator.ts";
import type { BodyContext, OpenaiApi } from "./openai-backend.ts";
import { fieldsOfProvider } from "./openai-fields.ts";
import { asksForLongTtl } from "./prompt-cache.ts";
import { chatFields, isChatFile, type WireOptions, wireBody } from "./openai-wire.ts";

/** Chat Completions, as OpenAI and compatible servers speak it. */
export function chatApi(options: Omit<WireOptions, keyof BodyContext>): OpenaiApi {
  return {
    path: "/chat/completions",
    fixedFormat: (request, reader) => {
      const isSet = "response_format" in { ...options.extraBody, ...fieldsOfProvider(request, reader, chatFields) };
      return isSet ? "prompt" : undefined;
    },
    takesFile: isChatFile,
    body: (request, context) => wireBody(request, { ...options, ...context }),
    writesLongCache: ({ providerOptions }) =>
      asksForLongTtl(options.caching?.cacheTtl, options.extraBody, providerOptions),
    answer: () => new AnswerAccumulator(),
  };
}
