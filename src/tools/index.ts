export { type AskUserOptions, askUser, type UserQuestion } from "./ask-user.ts";
export { type Auth, concealCredentials } from "./auth.ts";
export { AwaitedChild } from "./awaited-child.ts";
export { answerText, type ClientTool, type ClientToolDefinition, clientTool } from "./client-tool.ts";
export {
  type ControlTool,
  type ControlToolName,
  cancelArgumentsSchema,
  controlTools,
  statusArgumentsSchema,
  waitArgumentsSchema,
} from "./control-tools.ts";
export { type CheckedArguments, defineTool, type ToolArguments, type ToolDefinition } from "./define-tool.ts";
export {
  type InternalTool,
  type InternalToolName,
  internalTools,
  type ListToolCallsArguments,
  type LoadToolResultsArguments,
} from "./internal-tools.ts";
export { excerptOf, type RenderedOutput, renderOutput } from "./output.ts";
export type { ToolParameters } from "./parameters.ts";
export type { ParsedArguments } from "./parsed-arguments.ts";
export { createToolRegistry, type RegisteredTool, type ToolRegistry } from "./registry.ts";
export { type RevocableRun, revocable } from "./revocable.ts";
export type {
  ArtifactInput,
  AwaitOptions,
  GenerateInput,
  PreviousTool,
  RunAgent,
  RunContext,
  SavedArtifact,
  SpawnedChild,
  SpawnOptions,
} from "./run-context.ts";
export { LONGEST_ARTIFACT, takeGenerateInput } from "./run-inputs.ts";
export { redactError } from "./secret-redaction.ts";
export type { SecretResolver } from "./secrets.ts";
export { createSlots, type ReleaseSlot, type Slots } from "./slots.ts";
export type { Reconciliation, Redact, ResolvedArguments, Tool } from "./tool.ts";
