import { listRule, oneOfRule, type OptionRule, ruleOf, wholeNumberRule } from "../base/index.ts";
import { type ThinkingReplay, thinkingReplays } from "./bound-thinking.ts";
import type { CacheTtl, PromptCaching } from "./prompt-cache.ts";
import { type StructuredOutput, structuredOutputs } from "./structured-output.ts";

/** Longest delay of a timer, in milliseconds. */
const LONGEST_DELAY_MS = 2_147_483_647;

export const delayRule: OptionRule = wholeNumberRule(1, LONGEST_DELAY_MS);

const messageRule = ruleOf(
  "a text, or a pattern",
  (value) => (typeof value === "string" && value !== "") || value instanceof RegExp,
);

const tooLongMessagesRule: OptionRule = listRule("a list of texts and patterns", messageRule);

/** The options that all adapters of this package have. */
export interface AdapterOptions {
  readonly contextWindow?: number | undefined;
  readonly stallTimeoutMs?: number | undefined;
  readonly headersTimeoutMs?: number | undefined;
  readonly requestTimeoutMs?: number | undefined;
  readonly imageTokens?: number | undefined;
  readonly fileTokens?: number | undefined;
  readonly tooLongMessages?: readonly (string | RegExp)[] | undefined;
  readonly structuredOutput?: "auto" | StructuredOutput | undefined;
  readonly thinkingReplay?: "auto" | ThinkingReplay | undefined;
  readonly cache?: PromptCaching | undefined;
  readonly cacheTtl?: CacheTtl | undefined;
}

export const adapterOptionRules: { readonly [Name in keyof AdapterOptions]-?: OptionRule } = {
  contextWindow: wholeNumberRule(1),
  stallTimeoutMs: delayRule,
  headersTimeoutMs: delayRule,
  requestTimeoutMs: delayRule,
  imageTokens: wholeNumberRule(1),
  fileTokens: wholeNumberRule(1),
  tooLongMessages: tooLongMessagesRule,
  structuredOutput: oneOfRule("auto", ...structuredOutputs),
  thinkingReplay: oneOfRule("auto", ...thinkingReplays),
  cache: oneOfRule("auto", "off"),
  cacheTtl: oneOfRule("5m", "30m", "1h", "12h"),
};

/** Options of other libraries, and where they are set here. */
export const adapterOptionsInstead = {
  timeout: "requestTimeoutMs",
  timeoutMs: "requestTimeoutMs",
  caching: "cache",
  ttl: "cacheTtl",
  maxRetries: "maxModelAttempts of defineAgent()",
  maxOutputTokens: "maxOutputTokens of defineAgent()",
  maxTokens: "maxOutputTokens of defineAgent()",
  temperature: "temperature of defineAgent()",
} as const;

/** Milliseconds for a whole call, unless `requestTimeoutMs` is set. */
export const defaultRequestTimeoutMs = 600_000;
