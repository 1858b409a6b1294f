export { type AgentSnapshot, AgentView, type ShownAgent } from "./agent-view.ts";
export {
  type AgentHandle,
  type CallOptions,
  createClient,
  type ExecuteTurnOptions,
  type FollowOptions,
  type KeyedOptions,
  type ScheduleHandle,
  type SteerResult,
  type TreeInfo,
  type TroupeClient,
  type TurnHandle,
} from "./client.ts";
export { type ClientErrorOptions, TroupeClientError } from "./client-error.ts";
export type { ClientHeaders, ClientOptions } from "./transport.ts";
export type {
  AgentInfo,
  BudgetInput,
  TurnSettings,
  ClientTool,
  DefinitionInfo,
  DeletedAgent,
  ListOptions,
  ListPage,
  NewAgent,
  NewSchedule,
  RequestDecision,
  ScheduledRunInfo,
  ScheduleInfo,
  TurnInfo,
  TurnOutcome,
  TurnRequest,
  TurnSummary,
} from "./api-types.ts";
export type { SessionStub, StubMismatch, StubReport, StubUse } from "../state/index.ts";
