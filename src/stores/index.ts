export * from "./batch.ts";
export * from "./foreign-write.ts";
export { memoryStores } from "./memory.ts";
export { isDue, isOfWork, type Moment } from "./moment.ts";
export * from "./outcomes.ts";
export * from "./ports.ts";
export { currentProcess } from "./process-identity.ts";
export * from "./stored-tree.ts";
export type { TreeStanding } from "./tree-standing.ts";
