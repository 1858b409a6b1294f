export { bindHost, storedErrorOf } from "./effect.ts";
export type { FactParts, Host, Proposed, SpawnRequest, TurnMemory } from "./host.ts";
export { liveAgentMachine, liveToolCallMachine, liveTurnMachine } from "./provide.ts";
export { outputOf } from "./check-output.ts";
export { hashOfArguments } from "./gate.ts";
export { requestKeyOf } from "./model-outcome.ts";
export { percentOfWindow, traceEntriesOf } from "./trace.ts";
