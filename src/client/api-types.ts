import type { LimitStop, TurnResult } from "../runtime/index.ts";
import type { AgentRequest, Content, Json, JsonObject, Lifecycle, StopReason, StoredError } from "../state/index.ts";

/* What troupe's own API takes and gives, as plain types. A test compares them with the schemas of the server. */

/** Limits of an agent's life or of one turn. An absent one is unlimited, 0 allows nothing. */
export interface BudgetInput {
  /** Model calls that open a step. */
  readonly maxSteps?: number | undefined;
  /** Input and output tokens together, subagents included. */
  readonly maxTokens?: number | undefined;
  /** Seconds of work; waiting for people does not count. */
  readonly maxSeconds?: number | undefined;
  /** Dollars, subagents included. */
  readonly maxCost?: number | undefined;
  /** The moment at which all work ends: an ISO text, or milliseconds since the epoch. */
  readonly deadline?: string | number | undefined;
  /** Tool calls of this agent. */
  readonly maxToolCalls?: number | undefined;
  /** Steps of this agent and all its subagents. */
  readonly maxTreeSteps?: number | undefined;
  /** Tool calls of this agent and all its subagents. */
  readonly maxTreeToolCalls?: number | undefined;
  /** Reserves each prompt at a bound that no tokenizer exceeds. */
  readonly strict?: boolean | undefined;
  /** The last call that fits gives an answer. */
  readonly finalAnswer?: boolean | undefined;
}

/** A kind of agent that can be created. */
export interface DefinitionInfo {
  /** What `definition` of a new agent takes. */
  readonly name: string;
  /** A hash of the definition's settings that affect its behaviour. */
  readonly version: string;
  /** Name of its model. */
  readonly model: string;
  /** Its tools, without their parameters. */
  readonly tools: readonly { readonly name: string; readonly description: string }[];
}

/** An agent as it is now. Times are milliseconds since the epoch. */
export interface AgentInfo {
  /** Its id. */
  readonly agentId: string;
  /** Name and version of its definition. */
  readonly definition: { readonly name: string; readonly version: string };
  /** The agent at the top of its tree: the agent itself, unless it is a subagent. */
  readonly rootAgentId: string;
  /** The group that it was created in, or `null` if it was created in none. */
  readonly sessionId: string | null;
  /** `ready` takes a turn; `busy` has one; `paused` and `shutdown` take none. */
  readonly status: Lifecycle;
  /** Turns that have ended. */
  readonly turnCount: number;
  /** The turn that has not ended yet, or `null` if all have ended. */
  readonly openTurnId: string | null;
  /** When it was created. */
  readonly createdAt: number;
  /** When it last did something. */
  readonly lastActivity: number;
  /** Why its last turn failed; null if it did not. */
  readonly error: StoredError | null;
  /** What it was created with. */
  readonly metadata: JsonObject;
}

/** An agent to create. */
export interface NewAgent {
  /** Name of a definition that the server has. */
  readonly definition: string;
  /** A name of the caller's choice, 1 to 255 characters: the same name is the same agent. */
  readonly key?: string | undefined;
  /** Groups agents. */
  readonly sessionId?: string | undefined;
  /** Kept with the agent, and shown by `info()`. */
  readonly metadata?: JsonObject | undefined;
  /** Limits of the agent's whole life. */
  readonly budget?: BudgetInput | undefined;
  /** The conversation that a new agent begins with; an agent that exists keeps its own. */
  readonly messages?: readonly { readonly role: "user" | "assistant"; readonly content: Content }[] | undefined;
}

/** A tool that the caller runs, for a definition with `clientTools: true`. */
export interface ClientTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly parameters: JsonObject;
}

/** What a turn waits for: an approval, an answer, a client's tool, credentials. */
export type TurnRequest = Omit<AgentRequest, "tenant" | "ownerId" | "isGuarded" | "decidedWith">;

/** The outcome of an ended turn. */
export interface TurnOutcome
  extends Pick<
    TurnResult,
    "text" | "stopReason" | "finalAnswer" | "steps" | "toolCalls" | "usage" | "cost" | "spent" | "error" | "errors"
  > {
  /** The limit that stopped it; null if none did. */
  readonly stop: LimitStop | null;
  /** The checked answer, if the definition has an `output` schema. */
  readonly output?: Json | undefined;
}

/** A turn as it is now. */
export interface TurnInfo {
  /** Its id. */
  readonly turnId: string;
  /** The agent whose turn it is. */
  readonly agentId: string;
  /** Its number among the agent's turns, from 1. */
  readonly number: number;
  /** `completed`, `stopped` and `failed` are ends. */
  readonly status: "queued" | "running" | "waiting" | "completed" | "stopped" | "failed";
  /** The step it is in; null unless it runs. */
  readonly step: number | null;
  /** Null unless it waits. */
  readonly waitingFor: "paused" | "request" | null;
  /** What it waits for: open requests of it and its subagents. */
  readonly requests: readonly TurnRequest[];
  /** Null until it has ended. */
  readonly result: TurnOutcome | null;
}

/** A turn in a list. Times are milliseconds since the epoch. */
export interface TurnSummary {
  /** Its id. */
  readonly turnId: string;
  /** The agent whose turn it is. */
  readonly agentId: string;
  /** Its number among the agent's turns, from 1. */
  readonly number: number;
  /** The group of its agent, or `null` if the agent is in none. */
  readonly sessionId: string | null;
  /** `open`: it runs or waits; ask for the turn itself. */
  readonly status: "queued" | "open" | "completed" | "stopped" | "failed";
  /** Why it ended; null until then. */
  readonly stopReason: StopReason | null;
  /** When it was asked for. */
  readonly openedAt: number;
  /** When its status changed last. */
  readonly changedAt: number;
}

/** A decision on a request. Only the first one counts. */
export type RequestDecision =
  /** For an approval; `provided` for credentials. */
  | { readonly verdict: "approved" | "provided" }
  /** For an approval: the call runs with these arguments in place of the model's. */
  | { readonly verdict: "edited"; readonly arguments: Json }
  /** For any request; the model gets the reason. */
  | { readonly verdict: "rejected"; readonly reason?: string | undefined }
  /** For a question or a client's tool. `isError`: the tool failed, and `result` holds the reason. */
  | { readonly verdict: "answered"; readonly result: Json; readonly isError?: boolean | undefined };

/** One page of a list. */
export interface ListPage<Item> {
  /** At most as many as the page was asked for. */
  readonly items: readonly Item[];
  /** What `after` takes for the next page; `null` on the last page. */
  readonly next: string | null;
}

/** Which page of a list to read. */
export interface ListOptions {
  /** Items of a page, 1 to 100. Default: what the server gives, 50 or 100. */
  readonly limit?: number | undefined;
  /** `next` of the page before. Default: the first page. */
  readonly after?: string | undefined;
  /** Ends the call; it rejects with the reason of the signal. Default: none. */
  readonly signal?: AbortSignal | undefined;
}
