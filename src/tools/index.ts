export { type Auth, concealCredentials } from "./auth.ts";
export { defineTool, type ToolArguments, type ToolDefinition } from "./define-tool.ts";
export { excerptOf, type RenderedOutput, renderOutput } from "./output.ts";
export type { ToolParameters } from "./parameters.ts";
export type { ParsedArguments } from "./parsed-arguments.ts";
export { createToolRegistry, type RegisteredTool, type ToolRegistry } from "./registry.ts";
export { type RevocableRun, revocable } from "./revocable.ts";
export type {
  ArtifactInput,
  GenerateInput,
  PreviousTool,
  RunAgent,
  RunContext,
  SpawnedChild,
  SpawnOptions,
} from "./run-context.ts";
export { createSlots, type ReleaseSlot, type Slots } from "./slots.ts";
export type { Reconciliation, Tool } from "./tool.ts";
