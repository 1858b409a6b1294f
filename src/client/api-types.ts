import type { LimitStop, TurnResult } from "../runtime/index.ts";
import type {
  AgentRequest,
  CallSettings,
  Content,
  Json,
  JsonObject,
  Lifecycle,
  Schedule,
  ScheduledRun,
  SessionStub,
  StopReason,
  StoredError,
} from "../state/index.ts";

/* The inputs and outputs of troupe's own API as plain types. A test compares them with the server's schemas. */

/** Limits of an agent's lifetime or of one turn. Absent means unlimited; 0 allows nothing. */
export interface BudgetInput {
  /** Model calls that open a step. */
  readonly maxSteps?: number | undefined;
  /** Input and output tokens, including subagents. */
  readonly maxTokens?: number | undefined;
  /** Seconds of work; waiting for people does not count. */
  readonly maxSeconds?: number | undefined;
  /** Dollars, including subagents. */
  readonly maxCost?: number | undefined;
  /** The time at which all work ends: ISO 8601, or milliseconds since the epoch. */
  readonly deadline?: string | number | undefined;
  /** Tool calls of this agent. */
  readonly maxToolCalls?: number | undefined;
  /** Steps of this agent and all its subagents. */
  readonly maxTreeSteps?: number | undefined;
  /** Tool calls of this agent and all its subagents. */
  readonly maxTreeToolCalls?: number | undefined;
  /** Reserves for each prompt an upper bound of its tokens. */
  readonly strict?: boolean | undefined;
  /** The last call within the budget must give an answer. */
  readonly finalAnswer?: boolean | undefined;
  /** At a limit, a request asks a person to continue with more. */
  readonly askAtLimit?: boolean | undefined;
}

/** A kind of agent that can be created. */
export interface DefinitionInfo {
  /** Value for `definition` of a new agent. */
  readonly name: string;
  /** A hash of the definition's settings that affect its behaviour. */
  readonly version: string;
  /** Name of its model. */
  readonly model: string;
  /** Its tools, without their parameters. */
  readonly tools: readonly { readonly name: string; readonly description: string }[];
}

/** A deleted agent, and how much was deleted with it. */
export interface DeletedAgent {
  /** Its id. */
  readonly agentId: string;
  /** Milliseconds since the epoch. */
  readonly deletedAt: number;
  /** The numbers of deleted agents, turns, entries, messages, artifacts and requests. */
  readonly counts: {
    readonly agents: number;
    readonly turns: number;
    readonly entries: number;
    readonly messages: number;
    readonly artifacts: number;
    readonly requests: number;
  };
}

/** The current state of an agent. Times are milliseconds since the epoch. */
export interface AgentInfo {
  /** Its id. */
  readonly agentId: string;
  /** Name and version of its definition. */
  readonly definition: { readonly name: string; readonly version: string };
  /** The root agent of its tree; the agent itself unless it is a subagent. */
  readonly rootAgentId: string;
  /** The group that it was created in, or `null`. */
  readonly sessionId: string | null;
  /** Whether its tools and those of its subagents do not run, because stubs give their results. */
  readonly isStubbed: boolean;
  /** `ready` accepts a turn; `busy` has one; `paused` and `shutdown` accept none. */
  readonly status: Lifecycle;
  /** Turns that have ended. */
  readonly turnCount: number;
  /** The open turn, or `null` if all have ended. */
  readonly openTurnId: string | null;
  /** Time of its creation. */
  readonly createdAt: number;
  /** Time of its last activity. */
  readonly lastActivity: number;
  /** The error of its last turn; `null` unless that turn failed. */
  readonly error: StoredError | null;
  /** The metadata that it was created with. */
  readonly metadata: JsonObject;
}

/** An agent to create. */
export interface NewAgent {
  /** Name of one of the server's definitions. */
  readonly definition: string;
  /** The caller's name of the agent, 1 to 255 characters: the same name is the same agent. */
  readonly key?: string | undefined;
  /** Groups agents. */
  readonly sessionId?: string | undefined;
  /** Stored with the agent, and returned by `info()`. */
  readonly metadata?: JsonObject | undefined;
  /** Limits of the agent's whole lifetime. */
  readonly budget?: BudgetInput | undefined;
  /** The initial conversation of a new agent; ignored for an existing agent. */
  readonly messages?: readonly { readonly role: "user" | "assistant"; readonly content: Content }[] | undefined;
  /**
   * Results in the place of tools, for end-to-end tests: no tool of the agent and its subagents runs. Needs `stubsSecret` of
   * `createClient`. Default: tools run.
   */
  readonly stubs?: readonly SessionStub[] | undefined;
}

/** Settings of a turn's model calls. An agent's own bound and effort can only be lowered. */
export type TurnSettings = Omit<CallSettings, "providerOptions">;

/** A tool that the caller runs, for a definition with `clientTools: true`. */
export interface ClientTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly parameters: JsonObject;
}

/** A request that a turn waits for: an approval, an answer, a client's tool, credentials. */
export type TurnRequest = Omit<AgentRequest, "tenant" | "ownerId" | "isGuarded" | "decidedWith">;

/** The outcome of an ended turn. */
export interface TurnOutcome
  extends Pick<
    TurnResult,
    "text" | "stopReason" | "finalAnswer" | "steps" | "toolCalls" | "usage" | "cost" | "spent" | "error" | "errors"
  > {
  /** The limit that stopped it, or `null`. */
  readonly stop: LimitStop | null;
  /** The validated answer, if the definition has an `output` schema. */
  readonly output?: Json | undefined;
}

/** The current state of a turn. */
export interface TurnInfo {
  /** Its id. */
  readonly turnId: string;
  /** The agent whose turn it is. */
  readonly agentId: string;
  /** Number of the turn within its agent, from 1. */
  readonly number: number;
  /** Ended turns are `completed`, `stopped` or `failed`. */
  readonly status: "queued" | "running" | "waiting" | "completed" | "stopped" | "failed";
  /** The current step; `null` unless the turn runs. */
  readonly step: number | null;
  /** `null` unless the turn waits. */
  readonly waitingFor: "paused" | "request" | null;
  /** Open requests of the turn and its subagents that it waits for. */
  readonly requests: readonly TurnRequest[];
  /** `null` until the turn has ended. */
  readonly result: TurnOutcome | null;
}

/** A turn in a list. Times are milliseconds since the epoch. */
export interface TurnSummary {
  /** Its id. */
  readonly turnId: string;
  /** The agent whose turn it is. */
  readonly agentId: string;
  /** Number of the turn within its agent, from 1. */
  readonly number: number;
  /** The group of its agent, or `null`. */
  readonly sessionId: string | null;
  /** `open`: the turn runs or waits; read the turn for details. */
  readonly status: "queued" | "open" | "completed" | "stopped" | "failed";
  /** The reason of its end; `null` while it is open. */
  readonly stopReason: StopReason | null;
  /** Time at which it was requested. */
  readonly openedAt: number;
  /** Time of its last change of status. */
  readonly changedAt: number;
}

/** A decision on a request. Only the first one counts. */
export type RequestDecision =
  /** For an approval; `provided` for credentials. */
  | { readonly verdict: "approved" | "provided" }
  /** For an approval: the call runs with these arguments instead of the model's. */
  | { readonly verdict: "edited"; readonly arguments: Json }
  /** For any request; the model gets the reason. */
  | { readonly verdict: "rejected"; readonly reason?: string | undefined }
  /** For a question or a client's tool. `isError`: the tool failed, and `result` contains the reason. */
  | { readonly verdict: "answered"; readonly result: Json; readonly isError?: boolean | undefined };

/** A schedule to create. Exactly one of `at`, `every` and `cron` is needed. */
export interface NewSchedule {
  /** Name of one of the server's definitions. */
  readonly definition: string;
  /** The input of each turn: a text, or a list of content parts. */
  readonly input: Content;
  /** The caller's name of the schedule, 1 to 255 characters: one with the same name is replaced. */
  readonly key?: string | undefined;
  /** Once, at this time: ISO 8601, or milliseconds since the epoch. A text without an offset is a time in `timezone`. */
  readonly at?: string | number | undefined;
  /** At this distance: `"15m"`, `"1h30m"`, `"2d"`, or milliseconds. The server sets the shortest one, by default a minute. */
  readonly every?: string | number | undefined;
  /** At the times of a cron pattern: five fields, six with the second in front, or a name such as `@daily`. */
  readonly cron?: string | undefined;
  /** A name of the IANA time zone database. Default `UTC`. */
  readonly timezone?: string | undefined;
  /** No run before this time, in the forms of `at`. */
  readonly startAt?: string | number | undefined;
  /** No run from this time on, in the forms of `at`. */
  readonly endAt?: string | number | undefined;
  /** An agent of the caller, for every run: its conversation continues. Default: a new agent for each run. */
  readonly agentId?: string | undefined;
  /** Groups the agents that it creates. */
  readonly sessionId?: string | undefined;
  /** Metadata of the agents that it creates. */
  readonly metadata?: JsonObject | undefined;
  /** Limits of each turn, which may only lower those of the definition. */
  readonly budget?: Omit<BudgetInput, "deadline"> | undefined;
  /** Times at which no process of the server ran: none of them, one turn for all, or one for each. Default `once`. */
  readonly ifMissed?: "skip" | "once" | "all" | undefined;
  /** What happens if the agent `agentId` has an open turn. `steer` and `supersede` need `agentId`. Default `queue`. */
  readonly ifBusy?: "queue" | "skip" | "steer" | "supersede" | undefined;
}

/** What came of one time of a schedule, or of `runNow()`. Times are milliseconds since the epoch. */
export type ScheduledRunInfo = Omit<ScheduledRun, "key">;

/** A schedule on the server. Times are milliseconds since the epoch. */
export interface ScheduleInfo
  extends Omit<Schedule, "tenant" | "key" | "ownerId" | "actorId" | "revision" | "asked" | "steered" | "runs"> {
  /** Its id. */
  readonly scheduleId: string;
  /** The newest 20 runs, oldest first. */
  readonly runs: readonly ScheduledRunInfo[];
}

/** One page of a list. */
export interface ListPage<Item> {
  /** At most as many items as requested. */
  readonly items: readonly Item[];
  /** Value of `after` for the next page; `null` on the last page. */
  readonly next: string | null;
}

/** Which page of a list to read. */
export interface ListOptions {
  /** Items of a page, 1 to 100. Default: the server's, 50 or 100. */
  readonly limit?: number | undefined;
  /** `next` of the previous page. Default: the first page. */
  readonly after?: string | undefined;
  /** Aborts the call; it rejects with the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
}
