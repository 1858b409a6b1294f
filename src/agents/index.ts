export { definitionDoor } from "./agent-door.ts";
export { type AutoCompact, type AutoCompactOptions } from "./auto-compact.ts";
export { collectDefinitions, DEFAULT_MAX_STEPS, defineAgent, isBackground } from "./define-agent.ts";
export type {
  AgentDefinition,
  AgentOptions,
  AgentTool,
  InstructionsContext,
  SubagentPolicy,
  SubagentTool,
} from "./definition.ts";
export { assertGiven, definitionRule, isDefinition } from "./known-definition.ts";
export type { OutputSchema, ParsedOutput } from "./output-schema.ts";
export { DEFAULT_MAX_DEPTH, type Grant, grantOf, lineLimitOf, type SubagentOptions, subagent } from "./subagent.ts";
