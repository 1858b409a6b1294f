export { type AgentContext, agentContextSchema, foldAgent, isWaiting, newAgentContext } from "./agent-context.ts";
export { agentMachine, lifecycleOf } from "./agent.machine.ts";
export { compiled } from "./compiled.ts";
export { agentHears, allCallsHear, turnHears } from "./entry-routing.ts";
export { type ChildOptions, type LightLogic, lightCallback } from "./light-child.ts";
export {
  LONGEST_KEPT_MS,
  type PlacementAction,
  type PlacementContext,
  type PlacementEvent,
  placementMachine,
  type Rest,
} from "./placement.machine.ts";
export { type CallEffectInput, toolCallMachine } from "./tool-call.machine.ts";
export { type TurnEffectInput, turnMachine } from "./turn.machine.ts";
