export { type AgentContext, agentContextSchema, foldAgent, isWaiting, newAgentContext } from "./agent-context.ts";
export { type AgentEffectName, agentMachine, lifecycleOf } from "./agent.machine.ts";
export { type CalledFor, type EffectMeta, effectsCalledFor } from "./effect-slot.ts";
export { agentHears, allCallsHear, turnHears } from "./entry-routing.ts";
export { stepOfInput } from "./input-step.ts";
export {
  LONGEST_KEPT_MS,
  type PlacementAction,
  type PlacementContext,
  type PlacementEvent,
  placementMachine,
  type Rest,
} from "./placement.machine.ts";
export { type CallContext, type CallEffectName, toolCallMachine } from "./tool-call.machine.ts";
export { type TurnContext, type TurnEffectName, turnMachine } from "./turn.machine.ts";
