export { bindHost, storedErrorOf } from "./effect.ts";
export type { FactParts, Host, Proposed, SpawnRequest, TurnMemory } from "./host.ts";
export { liveAgentMachine, liveToolCallMachine, liveTurnMachine } from "./provide.ts";
export { traceEntriesOf } from "./trace.ts";
