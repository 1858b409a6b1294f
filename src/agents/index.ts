export {
  type AgentDefinition,
  type AgentOptions,
  type AgentTool,
  collectDefinitions,
  DEFAULT_MAX_STEPS,
  defineAgent,
  type InstructionsContext,
} from "./define-agent.ts";
export {
  DEFAULT_MAX_DEPTH,
  grantOf,
  type SubagentOptions,
  type SubagentPolicy,
  type SubagentTool,
  subagent,
} from "./subagent.ts";
