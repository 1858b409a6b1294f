export { createRedactor, type Redactor, type RedactorOptions } from "../base/index.ts";
export type { EventFeed, Telemetry, JournalSource } from "./listen.ts";
export { type OpenTelemetryOptions, traceToOpenTelemetry } from "./open-telemetry.ts";
export { type RenderTraceOptions, renderTrace } from "./render-trace.ts";
export {
  type SessionRecord,
  type SessionTurn,
  type SessionMessage,
  type SessionRecordOptions,
  sessionRecord,
} from "./session-record.ts";
export { type LogOptions, type TerminalLogOptions, terminalLog, type TextLogLocation, textLog } from "./logs.ts";
export { sessionYaml, type YamlSessionOptions, yamlSession } from "./yaml-session.ts";
