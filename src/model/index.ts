export * from "./language-model.ts";
export { callsServer } from "./adapter-model.ts";
export { bindThinking } from "./bound-thinking.ts";
export { callModel, type ModelAnswer } from "./call-model.ts";
export { type BreakerLimits, breakersOf, type CircuitBreakerOptions } from "./circuit-breaker.ts";
export {
  type BudgetLeft,
  budgetLeftOf,
  calledModels,
  type Composition,
  compositionOf,
  type ModelChoice,
} from "./composition.ts";
export { fallbackModel, type FallbackModelOptions, isFallbackError } from "./fallback-model.ts";
export { modelOf } from "./model-of.ts";
export { pickedIndex, routedModel, type RoutedModelOptions } from "./routed-model.ts";
export { type OpenaiModelOptions, openaiModel } from "./openai-model.ts";
export { checkedPrice, examplePrice, PriceBook, type PricedModel, type PriceTable } from "./prices.ts";
export {
  byteBound,
  countPromptTokens,
  countTokens,
  imageTokenBound,
  type MeasuredPrompt,
  promptByteBound,
  PromptMemory,
} from "./token-count.ts";
export {
  defaultClosingLine,
  type OfflineModelOptions,
  offlineModel,
  type Plan,
  plannedModel,
} from "./offline-model.ts";
export { answerFromConversation } from "./offline-conversation.ts";
export { isProse, type Passage, passagesOf } from "./offline-passages.ts";
export { type Assignment, oneLine, type ToolResult } from "./offline-request.ts";
export { missingTerms, rank, termsOf } from "./offline-search.ts";
export { answerFromTools } from "./offline-tools.ts";
export { MOST_TOKENS } from "./usage.ts";
