export type { Job, ToolJob, ToolJobKey, WakeJob } from "./jobs.ts";
export { localQueues, type LocalQueuesOptions } from "./local.ts";
export * from "./ports.ts";
