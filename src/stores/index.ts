export * from "./batch.ts";
export { memoryStores } from "./memory.ts";
export { isOfWork, type Moment } from "./moment.ts";
export * from "./outcomes.ts";
export * from "./ports.ts";
export { currentProcess } from "./process-identity.ts";
export * from "./stored-tree.ts";
