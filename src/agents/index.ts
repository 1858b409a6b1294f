export { definitionOptions } from "./definition-options.ts";
export { collectDefinitions, DEFAULT_MAX_STEPS, defineAgent, isBackground, missingGuard } from "./define-agent.ts";
export {
  type AgentDefinition,
  type AgentOptions,
  type AgentTool,
  type AutoCompact,
  type AutoCompactOptions,
  type InstructionsContext,
  type OutputOf,
  type SubagentPolicy,
  type SubagentTool,
  assertGiven,
  definitionRule,
  isDefinition,
} from "./definition.ts";
export type { OutputSchema, ParsedOutput } from "./output-schema.ts";
export { DEFAULT_MAX_DEPTH, type Grant, grantOf, spawnLimitOf, type SubagentOptions, subagent } from "./subagent.ts";
export { withModel, type WithModelOptions } from "./with-model.ts";
export { type ToolStub, withTools } from "./with-tool-stubs.ts";
export { withAddedTools } from "./with-tools.ts";
export { withWrappedTools } from "./with-wrapped-tools.ts";
