export {
  type AgentContext,
  agentContextSchema,
  agentMachine,
  foldAgent,
  isWaiting,
  lifecycleOf,
  newAgentContext,
} from "./agent.machine.ts";
export { compiled } from "./compiled.ts";
export { agentHears, allCallsHear, turnHears } from "./entry-routing.ts";
export { type ChildOptions, type LightLogic, lightCallback } from "./light-child.ts";
export { type CallEffectInput, toolCallMachine } from "./tool-call.machine.ts";
export { type TurnEffectInput, turnMachine } from "./turn.machine.ts";
