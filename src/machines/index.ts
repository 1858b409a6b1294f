export { agentMachine } from "./agent.machine.ts";
export {
  type AgentContext,
  agentContextSchema,
  foldAgent,
  isWaiting,
  lifecycleOf,
  newAgentContext,
} from "./agent-state.ts";
export type { CallEffectInput, TurnEffectInput } from "./effect-inputs.ts";
export { agentHears, turnHears } from "./hearing.ts";
export { toolCallMachine } from "./tool-call.machine.ts";
export { turnMachine } from "./turn.machine.ts";
