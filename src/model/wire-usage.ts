import type { Usage } from "../state/index.ts";
import { wireCount, wireObject } from "./wire-values.ts";

/**
 * Reads a usage object in the spellings that are about. `undefined` when it does not tell both sides, or says that
 * nothing at all was used: then the tokens have to be counted here.
 */
export function readUsage(value: unknown): Usage | undefined {
  const raw = wireObject(value);
  if (raw === undefined) return undefined;
  const inputTokens = wireCount(raw["prompt_tokens"] ?? raw["input_tokens"]);
  const generated = wireCount(raw["completion_tokens"] ?? raw["output_tokens"]);
  if (inputTokens === undefined || generated === undefined || inputTokens + generated === 0) return undefined;
  // Some count reasoning in the total only; it is billed as output all the same.
  const total = wireCount(raw["total_tokens"]) ?? 0;
  const outputTokens = Math.max(generated, total - inputTokens);
  const inputDetails = wireObject(raw["prompt_tokens_details"] ?? raw["input_tokens_details"]);
  const outputDetails = wireObject(raw["completion_tokens_details"] ?? raw["output_tokens_details"]);
  const cached = wireCount(inputDetails?.["cached_tokens"] ?? raw["prompt_cache_hit_tokens"]);
  const reasoning = wireCount(outputDetails?.["reasoning_tokens"]);
  return {
    inputTokens,
    outputTokens,
    ...(cached === undefined ? {} : { cachedInputTokens: Math.min(cached, inputTokens) }),
    ...(reasoning === undefined ? {} : { reasoningTokens: Math.min(reasoning, outputTokens) }),
  };
}
