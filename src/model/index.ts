export * from "./language-model.ts";
export { callModel, type ModelAnswer } from "./call-model.ts";
export { httpFetch } from "./http-fetch.ts";
export { type OpenaiModelOptions, openaiModel } from "./openai-model.ts";
export { checkedPrice, examplePrice, PriceBook, type PricedModel, type PriceTable } from "./prices.ts";
export { imageTokenBound } from "./prompt-parts.ts";
export { byteBound, countPromptTokens, countTokens, promptByteBound } from "./token-count.ts";
export {
  isProse,
  isRelevant,
  type Keywords,
  keywordsOf,
  linePassages,
  type Match,
  matchPassage,
  type NumberedLine,
  type OfflineModelOptions,
  offlineModel,
  type Passage,
  passagesOf,
  type Statistics,
  scoreMatch,
  statisticsOf,
  surroundingsOf,
} from "./offline-model.ts";
export { MOST_TOKENS } from "./wire-usage.ts";
