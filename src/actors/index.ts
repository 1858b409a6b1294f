export { hashOfArguments } from "./call-request.ts";
export { outputOf } from "./check-output.ts";
export { bindHost, storedErrorOf } from "./effect.ts";
export type {
  BackgroundChild,
  BackgroundDesk,
  FactParts,
  Host,
  Proposed,
  SpawnRequest,
  TurnMemory,
  Viewers,
} from "./host.ts";
export { reportIdOf, reportMessage } from "./report.ts";
export { requestKeyOf } from "./model-outcome.ts";
export { PromptMemory } from "./prompt-memory.ts";
export { liveAgentMachine, liveToolCallMachine, liveTurnMachine } from "./provide.ts";
export { worldKeyOf } from "./run-tool.ts";
export { percentOfWindow, traceEntriesOf } from "./trace.ts";
