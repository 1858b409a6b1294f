export {
  agentMachine,
  type AgentContext,
  agentContextSchema,
  foldAgent,
  isWaiting,
  lifecycleOf,
  newAgentContext,
} from "./agent.machine.ts";
export { agentHears, allCallsHear, turnHears } from "./entry-routing.ts";
export { type CallEffectInput, toolCallMachine } from "./tool-call.machine.ts";
export { type TurnEffectInput, turnMachine } from "./turn.machine.ts";
