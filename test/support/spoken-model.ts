import type { GenerateOptions, LanguageModel } from "../../src/index.ts";
import type { ModelResponse } from "../../src/state/index.ts";

/** One answer, which the test sends. */
export interface Speech {
  /** Whether the caller requested a stream. */
  readonly isStreamed: boolean;
  say(text: string): void;
  think(text: string): void;
  /** Writes a piece of a call's arguments; the first piece of a call names its tool. */
  call(index: number, name: string, text?: string): void;
  /** Ends the answer with the sent text; with a tool name it calls that tool. */
  end(tool?: string): void;
  fail(error: Error): void;
}

/** A model whose answers are sent by the test, call by call. */
export class SpokenModel {
  readonly model: LanguageModel;
  readonly #speeches: PromiseWithResolvers<Speech>[] = [];
  #begun = 0;
  #taken = 0;

  constructor() {
    this.model = {
      name: "spoken",
      provider: "test",
      countPromptTokens: () => 1,
      generate: (_request, options) => this.#generate(options),
    };
  }

  /** Resolves with the next call. */
  next(): Promise<Speech> {
    this.#taken += 1;
    return this.#speech(this.#taken - 1).promise;
  }

  #speech(index: number): PromiseWithResolvers<Speech> {
    const known = this.#speeches[index] ?? Promise.withResolvers<Speech>();
    this.#speeches[index] = known;
    return known;
  }

  async #generate({ onDelta, signal }: GenerateOptions): Promise<ModelResponse> {
    const answered = Promise.withResolvers<ModelResponse>();
    const onAbort = (): void => answered.reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    let content = "";
    let thought = "";
    const index = this.#begun;
    this.#begun += 1;
    this.#speech(index).resolve({
      isStreamed: onDelta !== undefined,
      say: (text) => {
        content += text;
        onDelta?.({ type: "text", text });
      },
      think: (text) => {
        thought += text;
        onDelta?.({ type: "reasoning", text });
      },
      call: (index, name, text) => {
        if (text === undefined) onDelta?.({ type: "tool-call", index, id: `call${index}`, name });
        else onDelta?.({ type: "tool-arguments", index, text });
      },
      end: (tool) =>
        answered.resolve({
          content,
          toolCalls: tool === undefined ? [] : [{ id: `call${index}`, name: tool, arguments: "{}" }],
          ...(thought === "" ? {} : { reasoning: { reasoning_content: thought } }),
          usage: { inputTokens: 1, outputTokens: 1 },
          finishReason: tool === undefined ? "stop" : "tool_calls",
          model: "spoken",
        }),
      fail: (error) => answered.reject(error),
    });
    try {
      return await answered.promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}
