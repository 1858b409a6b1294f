export { agentMachine } from "./agent.machine.ts";
export {
  type AgentContext,
  agentContextSchema,
  foldAgent,
  isWaiting,
  lifecycleOf,
  newAgentContext,
} from "./agent-state.ts";
export { agentHears, turnHears } from "./entry-routing.ts";
export { type CallEffectInput, toolCallMachine } from "./tool-call.machine.ts";
export { type TurnEffectInput, turnMachine } from "./turn.machine.ts";
