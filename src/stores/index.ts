export { memoryStores } from "./memory.ts";
export * from "./rules/batch.ts";
export * from "./rules/live-channel.ts";
export * from "./rules/outcomes.ts";
export * from "./rules/ports.ts";
export { currentProcess, isRunning } from "./rules/processes.ts";
export * from "./rules/queries.ts";
export { JOB_LOOK_MS, jobTimerId } from "./rules/queued-calls.ts";
