import type {
  AbortBody,
  AgentBody,
  ArtifactView,
  CallDetail,
  DecisionBody,
  FeedInfo,
  FeedMessage,
  MessagePage,
  Prompt,
  PromptRow,
  ProcessRow,
  QueueRow,
  RowView,
  RunHead,
  RunPage,
  SearchPage,
  StepPage,
  StoredAccounts,
  TransitionPage,
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

/** How the connection to the source of a run is. */
export type LinkState =
  | { readonly kind: "connecting" }
  | { readonly kind: "open" }
  | { readonly kind: "cut"; readonly why: string; readonly retryAt: number }
  | { readonly kind: "refused"; readonly why: string };

/** Whether the stores of a run answer. `reachedAt`: when they last did, by the clock of the feed. */
export interface SourceState {
  readonly isReachable: boolean;
  readonly reachedAt: number;
}

/**
 * All that the page knows comes through it. Two ways: a server, and the data of an exported file. Calls that fail throw
 * `FeedFailure`.
 */
export interface FeedClient {
  info(): Promise<FeedInfo>;
  runs(query: RunQuery): Promise<RunPage>;
  /** Sends the rows after the cursor and new ones. Reconnects by itself after a cut and continues behind the last row. */
  watch(runId: string, after: number, listener: WatchListener): { end(): void };
  /** `after`: how many are known already. */
  transitions(runId: string, agentId: string, page: { readonly after?: string }): Promise<TransitionPage>;
  messages(runId: string, agentId: string, query: MessageQuery): Promise<MessagePage>;
  /** One row for each model call, without contents. */
  prompts(runId: string, agentId: string): Promise<readonly PromptRow[]>;
  prompt(runId: string, agentId: string, seq: number): Promise<Prompt>;
  call(runId: string, callId: string): Promise<CallDetail>;
  row(runId: string, cursor: number): Promise<RowView>;
  requests(runId: string): Promise<readonly RequestRow[]>;
  /** Contents of the steps of a run, to compare it with another. */
  steps(runId: string, after: string | null): Promise<StepPage>;
  search(runId: string, text: string, query: SearchQuery): Promise<SearchPage>;
  storedAccounts(runId: string): Promise<StoredAccounts>;
  processes(): Promise<readonly ProcessRow[]>;
  /** `null` if the source has no queues. */
  queues(): Promise<readonly QueueRow[] | null>;
  artifact(runId: string, agentId: string, artifactId: string): Promise<ArtifactView>;
  /** Acts on agents. Absent if the page can only watch. */
  readonly act?: FeedActs | undefined;
}

export interface WatchListener {
  /** A promise: no more is wanted until it is fulfilled. */
  message(message: FeedMessage): Promise<void> | undefined;
  link(state: LinkState): void;
}

export interface FeedActs {
  decide(requestId: string, body: DecisionBody): Promise<void>;
  pause(agentId: string): Promise<void>;
  resume(agentId: string): Promise<void>;
  abort(agentId: string, body: AbortBody): Promise<void>;
  createAgent(body: AgentBody): Promise<{ readonly agentId: string }>;
  startTurn(agentId: string, body: TurnBody): Promise<{ readonly turnId: string }>;
}

/** Why a call to the feed failed, in words for a person. */
export class FeedFailure extends Error {
  override readonly name = "FeedFailure";
  readonly code: string;
  /** Mistakes by field. */
  readonly issues: readonly { readonly path: string; readonly message: string }[];
  /** The request as it is now, if another client decided it first. */
  readonly request: RequestRow | undefined;

  constructor(code: string, message: string, more: { issues?: FeedFailure["issues"]; request?: RequestRow } = {}) {
    super(message);
    this.code = code;
    this.issues = more.issues ?? [];
    this.request = more.request;
  }
}

/** Words for anything that was thrown. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
