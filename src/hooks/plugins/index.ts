export { type ApprovalOptions, approval } from "./approval.ts";
export { type ContextWarningOptions, contextWarning } from "./context-warning.ts";
export { type NoProgressGuardOptions, noProgressGuard } from "./no-progress-guard.ts";
export { type ReflectionOptions, reflection } from "./reflection.ts";
export { type ToolLoggingOptions, toolLogging } from "./tool-logging.ts";
export { type TrustOptions, trust } from "./trust.ts";
