export { type ApprovalOptions, approval, type TrustOptions, trust } from "./access.ts";
export { type ContextWarningOptions, contextWarning, type ToolLoggingOptions, toolLogging } from "./reporting.ts";
export { type NoProgressGuardOptions, noProgressGuard, type ReflectionOptions, reflection } from "./progress.ts";
