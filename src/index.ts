export * from "./agents/index.ts";
export { type Clock, systemClock, type TraceHeaders } from "./base/index.ts";
export * from "./budget/index.ts";
export * from "./context/index.ts";
export * from "./errors/index.ts";
export * from "./hooks/index.ts";
export * from "./model/index.ts";
export {
  type DeadCause,
  type DeadLetter,
  localQueues,
  type LocalQueuesOptions,
  type QueueCount,
  type QueueHealth,
  type Queues,
  type ToolQueueOptions,
} from "./queues/index.ts";
export * from "./runtime/index.ts";
export * from "./state/index.ts";
export { memoryStores, placeOfAgent, type Stores } from "./stores/index.ts";
export * from "./tools/index.ts";
