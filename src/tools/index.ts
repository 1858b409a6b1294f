export { type AskInput, AskedRequest, type BillInput, type ToolAnswer } from "./call-in-parts.ts";
export { type ArtifactReading, readArtifactText } from "./artifact-text.ts";
export { type BoundedMatches, boundedMatches } from "./bounded-matches.ts";
export { compilePattern } from "./pattern.ts";
export {
  type AskUserOptions,
  askUser,
  type UserQuestion,
  renderAnswer,
  type ClientTool,
  type ClientToolDefinition,
  clientTool,
  clientToolsOf,
} from "./client-tool.ts";
export {
  type Auth,
  concealCredentials,
  type ArtifactInput,
  type AwaitOptions,
  type GenerateInput,
  type PreviousTool,
  type RunAgent,
  type RunContext,
  type SavedArtifact,
  type SpawnedChild,
  type SpawnOptions,
  AwaitedChild,
  LONGEST_ARTIFACT,
  storedContent,
  takeGenerateInput,
  type CheckedSpawn,
  checkedSpawn,
} from "./run-context.ts";
export type { ScheduleCaller, ScheduleTurnInput, ScheduleTurnLimits, TurnSchedules } from "./turn-schedules.ts";
export { scheduleTurn, type ScheduleTurnOptions } from "./schedule-turn.ts";
export {
  type ControlTool,
  type ControlToolName,
  cancelArgumentsSchema,
  controlTools,
  statusArgumentsSchema,
  waitArgumentsSchema,
  artifactTool,
  type InternalTool,
  type InternalToolName,
  internalTools,
  type ListToolCallsArguments,
  type LoadToolResultsArguments,
  type ReadArtifactArguments,
} from "./runtime-tools.ts";
export { type CheckedArguments, defineTool, type ToolArguments, type ToolDefinition } from "./define-tool.ts";
export type { ListedSkill, SkillContent, SkillSource } from "./skill-source.ts";
export { type ToolResult, toolResult, type ToolResultPart } from "./tool-result.ts";
export { excerptOf, type RenderedOutput, renderOutput } from "./output.ts";
export type { Issue, ParsedArguments } from "./parsed-arguments.ts";
export { createRepair, type ToolParameters } from "./parameters.ts";
export {
  checkValue,
  isValueSchema,
  jsonSchemaOf,
  type ValueOf,
  type ValueSchema,
  valueSchemaKinds,
} from "./standard-schema.ts";
export type { DataSubject, Forget } from "./data-subject.ts";
export { createToolRegistry, type RegisteredTool, type ToolRegistry, withTools } from "./registry.ts";
export { type RevocableRun, revocable } from "./revocable.ts";
export { nothingToRedact, redactError, redactorOf, type SecretResolver } from "./secrets.ts";
export { createSlots, createSlotsByTool, type ReleaseSlot, type Slots } from "./slots.ts";
export type { Reconciliation, Redact, ResolvedArguments, Tool } from "./tool.ts";
