export { hashOfArguments } from "./tool-calls.ts";
export { outputOf } from "./check-output.ts";
export { bindHost, isOver } from "./effect.ts";
export { storedErrorOf } from "./stored-error.ts";
export type {
  BackgroundChild,
  BackgroundDesk,
  FactParts,
  Host,
  Proposed,
  QueueDesk,
  SpawnRequest,
  TurnMemory,
  Viewers,
  Withdrawal,
} from "./host.ts";
export {
  type AttemptEnd,
  type AttemptPlace,
  endOfError,
  endOfOutput,
  executeTool,
  isOnce,
  reconcileCall,
} from "./attempt-tool.ts";
export { runAgentOf } from "./run-context.ts";
export {
  artifactOf,
  type CallResult,
  errorResult,
  saveArtifacts,
  settleCall,
  settleEnded,
  unknownResult,
} from "./settle-call.ts";
export { reportIdOf, reportMessage } from "./background-calls.ts";
export { requestKeyOf } from "./model-outcome.ts";
export { PromptMemory } from "./prompt-memory.ts";
export { liveAgentMachine, liveToolCallMachine, liveTurnMachine } from "./provide.ts";
export { worldKeyOf } from "./run-tool.ts";
export { percentOfWindow } from "./trace.ts";
