import type {
  AbortBody,
  AgentBody,
  ArtifactView,
  CallDetail,
  DecisionBody,
  EvalRun,
  Evals,
  FeedInfo,
  FeedMessage,
  MessagePage,
  Prompt,
  PromptRow,
  ProcessRow,
  ScheduleRow,
  QueueRow,
  ForkBody,
  RowView,
  RunForks,
  RunHead,
  RunPage,
  RunReplay,
  SearchPage,
  StepPage,
  StoredAccounts,
  TransitionPage,
  TurnAnswer,
  TurnBody,
} from "../feed/wire.ts";

export type RequestRow = RunHead["requests"][number];

export interface RunQuery {
  readonly after?: string;
  readonly limit?: number;
  readonly text?: string;
  readonly status?: string;
  readonly model?: string;
  readonly agent?: string;
  readonly since?: number;
  readonly until?: number;
}

export interface MessageQuery {
  readonly at?: number;
  readonly before?: string;
  readonly limit?: number;
}

export interface SearchQuery {
  readonly after?: number;
  readonly signal: AbortSignal;
}

/** State of the connection to the source of a run. */
export type LinkState =
  | { readonly kind: "connecting" }
  | { readonly kind: "open" }
  | { readonly kind: "cut"; readonly why: string; readonly retryAt: number }
  | { readonly kind: "refused"; readonly why: string };

/** Whether the stores of a run answer. `reachedAt` is when they last did, by the feed's clock. */
export interface SourceState {
  readonly isReachable: boolean;
  readonly reachedAt: number;
}

/**
 * The page's only data source: either a server or the data in an exported file. Methods reject with `FeedFailure`.
 */
export interface FeedClient {
  info(): Promise<FeedInfo>;
  runs(query: RunQuery): Promise<RunPage>;
  /** Sends the rows after the cursor and new rows. Reconnects automatically and continues after the last row. */
  watch(runId: string, after: number, listener: WatchListener): { end(): void };
  /** `after`: the number of transitions that the caller has already. */
  transitions(runId: string, agentId: string, page: { readonly after?: string }): Promise<TransitionPage>;
  messages(runId: string, agentId: string, query: MessageQuery): Promise<MessagePage>;
  /** One row for each model call, without contents. */
  prompts(runId: string, agentId: string): Promise<readonly PromptRow[]>;
  prompt(runId: string, agentId: string, seq: number): Promise<Prompt>;
  call(runId: string, callId: string): Promise<CallDetail>;
  row(runId: string, cursor: number): Promise<RowView>;
  requests(runId: string): Promise<readonly RequestRow[]>;
  /** Contents of the steps of a run, to compare it with another run. */
  steps(runId: string, after: string | null): Promise<StepPage>;
  /** The family of forks of a run, and the points at which it can be forked. */
  forks(runId: string): Promise<RunForks>;
  search(runId: string, text: string, query: SearchQuery): Promise<SearchPage>;
  storedAccounts(runId: string): Promise<StoredAccounts>;
  processes(): Promise<readonly ProcessRow[]>;
  schedules(): Promise<readonly ScheduleRow[]>;
  /** `null` if the source has no queues. */
  queues(): Promise<readonly QueueRow[] | null>;
  /** The report of evals; `null` if the source has none. */
  evals(): Promise<Evals | null>;
  /** The runs of a case of the report, those that failed first. */
  evalRuns(key: string): Promise<readonly EvalRun[]>;
  artifact(runId: string, agentId: string, artifactId: string): Promise<ArtifactView>;
  /** Actions on agents. Absent if the page is read-only. */
  readonly act?: FeedActs | undefined;
}

export interface WatchListener {
  /** If a promise is returned, no further message is sent until it resolves. */
  message(message: FeedMessage): Promise<void> | undefined;
  link(state: LinkState): void;
}

export interface FeedActs {
  decide(requestId: string, body: DecisionBody): Promise<void>;
  pause(agentId: string): Promise<void>;
  resume(agentId: string): Promise<void>;
  abort(agentId: string, body: AbortBody): Promise<void>;
  delete(agentId: string): Promise<void>;
  createAgent(body: AgentBody): Promise<{ readonly agentId: string }>;
  startTurn(agentId: string, body: TurnBody): Promise<TurnAnswer>;
  fork(runId: string, body: ForkBody): Promise<{ readonly runId: string }>;
  replay(runId: string): Promise<RunReplay>;
}

/** A failed call to the feed, with a message for people. */
export class FeedFailure extends Error {
  override readonly name = "FeedFailure";
  readonly code: string;
  /** Errors by field. */
  readonly issues: readonly { readonly path: string; readonly message: string }[];
  /** The current state of the request, if another client decided it first. */
  readonly request: RequestRow | undefined;

  constructor(code: string, message: string, more: { issues?: FeedFailure["issues"]; request?: RequestRow } = {}) {
    super(message);
    this.code = code;
    this.issues = more.issues ?? [];
    this.request = more.request;
  }
}

/** The message of anything that was thrown. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
