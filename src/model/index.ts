export * from "./language-model.ts";
export { callModel, type ModelAnswer } from "./call-model.ts";
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
export { type Assignment, assignmentOf, oneLine, pathsIn, type ToolResult } from "./offline-request.ts";
export type { PlannedCall } from "./offline-tools.ts";
export { isIdentifier, isStopWord, stemOf, wordsOf } from "./offline-words.ts";
export { MOST_TOKENS } from "./usage.ts";
