export { type Actor, runtimeActor, storeActor, type StoreActorOptions, type Talk } from "./feed/act.ts";
export type { Forks } from "./feed/fork-acts.ts";
export type { EvalsSource, ReportedRun } from "./feed/evals.ts";
export { Feed, type FeedOptions } from "./feed/feed.ts";
export { type RunFile, runFileSchema } from "../stores/index.ts";
export {
  auditFileSchema,
  type AuditRunOptions,
  type AuditSource,
  auditRun,
  readAudit,
  verifyAudit,
  type VerifyAuditOptions,
  withoutContent,
} from "./feed/audits.ts";
export type {
  AuditedAccount,
  AuditedApproval,
  AuditedEffect,
  AuditedPrompt,
  AuditProblem,
  AuditReport,
} from "./run-model/audit-check.ts";
export type { AuditAgent, AuditDefinition, AuditFile, AuditRequest } from "./run-model/audit-file.ts";
export type { AuditLink, AuditMessage, Sealed } from "../base/index.ts";
export { type DeletionAudit, verifyDeletion } from "./feed/deletion-audit.ts";
export { importRun } from "./feed/run-file.ts";
export type { FeedSink, RunWatch } from "./feed/run-watch.ts";
export type { FeedSource } from "./feed/source.ts";
export { type TraceEvent, traceOfRun } from "./feed/trace-file.ts";
export type {
  AbortBody,
  AgentBody,
  AgentMachines,
  ArtifactView,
  CallDetail,
  ClientMessage,
  DecisionBody,
  EvalRun,
  Evals,
  Failure,
  FeedAgent,
  FeedEntry,
  FeedInfo,
  FeedMessage,
  FeedMessageItem,
  FeedOwner,
  FeedProcess,
  FeedRow,
  ForkBody,
  ForkOrigin,
  LiveEvent,
  MessagePage,
  OwnerRow,
  PageData,
  ProcessRow,
  ScheduleRow,
  Prompt,
  PromptRow,
  QueueRow,
  RowView,
  RunForkPoint,
  RunForks,
  RunHead,
  RunPage,
  RunReplay,
  RunRow,
  Scope,
  SearchHit,
  SearchPage,
  StepContents,
  StepPage,
  StoredAccounts,
  Transition,
  TransitionPage,
  TurnAnswer,
  TurnBody,
} from "./feed/wire.ts";
export type {
  AgentUse,
  RunSummary,
  SummaryAnswer,
  SummaryFact,
  SummaryPlace,
} from "./run-model/summary-facts.ts";
export type { Tokens } from "./http/gate.ts";
export { pageOfAudit } from "./http/page-of-audit.ts";
export { pageOfRun } from "./http/page-of-run.ts";
export {
  type FeedServer,
  type FeedServerOptions,
  inspectorRoutes,
  type InspectorRoutesOptions,
  type InspectorServer,
  type InspectorServerOptions,
  type MountedInspector,
  serveFeed,
  serveInspector,
  type StartedInspector,
  startInspector,
  type StartInspectorOptions,
} from "./start-inspector.ts";
export type { ActorFrame, InspectionFrame } from "./stately/frames.ts";
export { createInspector, type Inspector, type InspectorOptions } from "./stately/hub.ts";
