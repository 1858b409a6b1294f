export { withModel, type WithModelOptions } from "../agents/index.ts";
export { createFakeClock, type FakeClock } from "./fake-clock.ts";
export {
  type ModelScript,
  type ScriptedAnswer,
  type ScriptedCall,
  type ScriptedModel,
  scriptedModel,
  type ScriptedModelOptions,
  type ScriptedReply,
  type ScriptedToolCall,
} from "./scripted-model.ts";
