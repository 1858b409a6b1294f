import type { LanguageModel, ModelDelta } from "../../src/index.ts";
import { ModelError } from "../../src/index.ts";
import { adapter, callOf, type Foreign, rightAnswer, type Seam, worker } from "./seam-play.ts";

/** An adapter that returns the right answer with one foreign value in it. */
function answering(name: string, change: (foreign: Foreign) => object): Seam {
  return {
    name: `the model's ${name}`,
    define: (foreign) =>
      worker({ model: adapter(() => (foreign.isOn ? { ...rightAnswer, ...change(foreign) } : rightAnswer)) }),
  };
}

function calling(field: string): Seam {
  return answering(`toolCalls[].${field}`, (foreign) => {
    const [call] = callOf("nothing").toolCalls;
    return { content: "", toolCalls: [{ ...call, [field]: foreign.or("x") }, call] };
  });
}

function usage(field: string): Seam {
  return answering(`usage.${field}`, (foreign) => ({ usage: { ...rightAnswer.usage, [field]: foreign.or(1) } }));
}

function failing(field: string): Seam {
  return {
    name: `ModelError.${field}`,
    define: (foreign) =>
      worker({
        model: adapter(() => {
          if (!foreign.isOn) return rightAnswer;
          const error = new ModelError("down", { retryable: true, mayHaveBeenSent: true });
          throw Object.defineProperty(error, field, { value: foreign.or(null) });
        }),
      }),
  };
}

function withModel(name: string, model: (foreign: Foreign) => Partial<LanguageModel>, binds = false): Seam {
  const budget = binds ? { budget: { maxTokens: 1_000_000 } } : {};
  return {
    name,
    define: (foreign) => worker({ model: adapter(() => rightAnswer, model(foreign)), ...budget }),
  };
}

/** Every method of a custom adapter. */
export const modelSeams: readonly Seam[] = [
  { name: "the model's answer", define: (foreign) => worker({ model: adapter(() => foreign.or(rightAnswer)) }) },
  ...(["content", "toolCalls", "reasoning", "usage", "finishReason", "model"] as const).map((field) =>
    answering(field, (foreign) => ({ [field]: foreign.or(rightAnswer[field as "content"]) })),
  ),
  answering("toolCalls[]", (foreign) => ({ toolCalls: [foreign.or({})] })),
  ...["id", "name", "arguments"].map(calling),
  ...["inputTokens", "outputTokens", "cachedInputTokens", "cacheWriteTokens", "reasoningTokens"].map(usage),
  ...["estimated", "note"].map(usage),
  ...["message", "name", "code", "retryable", "status", "details"].map(failing),
  ...["mayHaveBeenSent", "partialInputTokens", "partialOutputTokens", "retryAfterMs"].map(failing),
  withModel("generate() that rejects", (foreign) => ({
    generate: async () => {
      foreign.thrown();
      return rightAnswer;
    },
  })),
  withModel("generate() that throws at once", (foreign) => ({
    generate: () => {
      foreign.thrown();
      return Promise.resolve(rightAnswer);
    },
  })),
  withModel("generate() that returns no promise", (foreign) => ({
    generate: () => foreign.or(rightAnswer) as unknown as Promise<typeof rightAnswer>,
  })),
  withModel("onDelta, during the call and after it", (foreign) => ({
    generate: async (_request, { onDelta }) => {
      const say = (): void => onDelta?.(foreign.or<ModelDelta>({ type: "text", text: "done" }));
      say();
      onDelta?.({ type: "text", text: foreign.or("x") });
      onDelta?.({ type: foreign.or("text"), text: "x" });
      setImmediate(say);
      return rightAnswer;
    },
  })),
  withModel("countPromptTokens()", (foreign) => ({ countPromptTokens: () => foreign.or(5) }), true),
  withModel("boundPromptTokens()", (foreign) => ({ boundPromptTokens: () => foreign.or(5) }), true),
  withModel(
    "counts that throw",
    (foreign) => {
      const count = (): number => {
        foreign.thrown();
        return 5;
      };
      return { countPromptTokens: count, boundPromptTokens: count };
    },
    true,
  ),
];
