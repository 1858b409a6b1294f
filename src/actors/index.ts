export { hashOfArguments } from "./call-request.ts";
export { outputOf } from "./check-output.ts";
export { bindHost, isOver, storedErrorOf } from "./effect.ts";
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
export { runAgentOf } from "./run-agent.ts";
export {
  artifactOf,
  type CallResult,
  errorResult,
  saveArtifacts,
  settleCall,
  settleEnded,
  unknownResult,
} from "./settle-call.ts";
export { reportIdOf, reportMessage } from "./report.ts";
export { requestKeyOf } from "./model-outcome.ts";
export { PromptMemory } from "./prompt-memory.ts";
export { liveAgentMachine, liveToolCallMachine, liveTurnMachine } from "./provide.ts";
export { worldKeyOf } from "./run-tool.ts";
export { percentOfWindow, traceEntriesOf } from "./trace.ts";
