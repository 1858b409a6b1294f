import { createHash, randomUUID } from "node:crypto";
import type {
  CallToolResult,
  ClientCapabilities,
  InputRequiredResult,
  ServerContext,
} from "@modelcontextprotocol/server";
import type { Clock, TraceHeaders } from "../../base/index.ts";
import { wordsOfThrown } from "../../base/index.ts";
import { NotFoundError, RequestConflictError } from "../../errors/index.ts";
import type { TurnRest } from "../../runtime/index.ts";
import type { AgentRequest } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { failureOf, isKeyReused } from "../core/failures.ts";
import type { StartedTurn } from "../core/plain-message.ts";
import { idOfUrl, urlIdOf } from "../core/url-ids.ts";
import { formOf, isAlike, outcomeOf, readResponse, type WantedDecision } from "./elicitations.ts";
import { notifyProgress } from "./progress.ts";
import type { McpServerSdk } from "./sdk.ts";
import { type AgentTool, TURN_RESULT } from "./served-agents.ts";
import type { AgentArguments } from "./tool-schemas.ts";
import { endedResult, errorResult, type TurnIds, waitingResult, withNotes, workingResult } from "./turn-results.ts";
import { stateCodec, type StateKey, type TurnState } from "./turn-state.ts";

/** The client of a call and the connection that it came over. */
export interface CallSide {
  readonly caller: Caller;
  readonly clock: Clock;
  /** Whether a lost connection ends a call that has no key: the protocol has no other way to cancel over HTTP. */
  readonly lossCancels: boolean;
  /** Waits for work for at most `ms`, and until the server closes; `undefined` if the work is not done by then. */
  within<T>(work: Promise<T>, ms: number): Promise<{ readonly value: T } | undefined>;
  /** Called with each call's work, which never rejects. Default: calls are not tracked. */
  readonly track?: ((work: Promise<unknown>) => void) | undefined;
}

export interface CallSettings {
  readonly sdk: McpServerSdk;
  readonly tools: readonly AgentTool[];
  /** Longest wait of a call for its turn, in milliseconds. */
  readonly waitMs: number;
  readonly stateKey: StateKey;
}

type Result = CallToolResult | InputRequiredResult;
type Followed = Pick<StartedTurn, "agent" | "turn" | "turnId">;

/** How a call follows its turn. */
interface Following {
  readonly tool: string;
  /** Sentences for the result: outcomes of requests that another client decided. */
  readonly notes: readonly string[];
  /** Whether to ask the client for open requests. */
  readonly asks: boolean;
  /** Whether a cancelled call aborts the turn. */
  readonly isOwn: boolean;
  /** Whether the call has started the turn. */
  readonly isFresh: boolean;
  readonly hasKey: boolean;
}

/** A call that continues a turn, and asks its client about open requests. */
const usual: Omit<Following, "tool"> = { notes: [], asks: true, isOwn: true, isFresh: false, hasKey: true };

const ROUTE = "mcp.call";

/**
 * The calls of one client's tools.
 *
 * 1. A call only reaches turns of its caller and of the served agents; others do not exist for it.
 * 2. The same key and input never start a second turn. The same answer to a request takes effect once.
 * 3. A call never approves anything, except by an answer to a form with a state that this server signed for this caller.
 * 4. Results never contain messages of the operator's errors.
 */
export class AgentCalls {
  readonly #side: CallSide;
  readonly #settings: CallSettings;

  constructor(side: CallSide, settings: CallSettings) {
    this.#side = side;
    this.#settings = settings;
  }

  /** Runs a turn of an agent, or continues the one whose state the client returns. */
  async callAgent(tool: AgentTool, args: AgentArguments, call: ToolCall): Promise<Result> {
    return await this.#readable(async () => {
      const state = call.context.mcpReq.requestState<TurnState>();
      if (state !== undefined) return await this.#answer(tool.name, state, call);
      const started = await this.#start(tool, args, call.context);
      const hasKey = args.key !== undefined;
      return await this.#follow(started, { ...usual, tool: tool.name, hasKey, isFresh: !started.isReplayed }, call);
    });
  }

  /** Waits for a turn of an earlier call. */
  async callResult(turnId: string, call: ToolCall): Promise<Result> {
    return await this.#readable(async () => {
      const state = call.context.mcpReq.requestState<TurnState>();
      if (state !== undefined) return await this.#answer(TURN_RESULT, state, call);
      const found = await this.#turn(idOfUrl(turnId));
      return await this.#follow(found, { ...usual, tool: TURN_RESULT, isOwn: false }, call);
    });
  }

  /** Ends a turn of an earlier call. */
  async callAbort(turnId: string): Promise<CallToolResult> {
    return await this.#readable(async () => {
      const found = await this.#turn(idOfUrl(turnId));
      await found.turn.abort("aborted by its client");
      const ended = await this.#side.within(found.turn.result, this.#settings.waitMs);
      const ids = idsOf(this.#side.caller, found);
      if (ended === undefined) return workingResult(ids);
      // The abort succeeded; only the result of the turn itself would be an error.
      return { ...endedResult(ended.value, ids), isError: false };
    });
  }

  async #start({ definition }: AgentTool, { input, conversation, key }: AgentArguments, context: ServerContext) {
    const { caller } = this.#side;
    const name = conversation ?? (key === undefined ? randomUUID() : conversationOfKey(key));
    const agent = await caller.openAgent({ definition: definition.name, name, sessionId: name });
    return await caller.plainMessage(agent, input, {
      ifBusy: "queue",
      ...(key === undefined ? {} : { key: { route: ROUTE, value: key } }),
      ...traceOf(context),
    });
  }

  /** A turn of this caller and of a served agent. Rejects with `NotFoundError`. */
  async #turn(turnId: string): Promise<Followed> {
    const found = await this.#side.caller.turn(turnId);
    const { agent } = found;
    const isServed = this.#settings.tools.some(({ definition }) => definition.name === agent.definition.name);
    if (isServed && agent.agentId === agent.rootAgentId) return found;
    throw new NotFoundError("there is no such turn");
  }

  /** Decides the requests that the client was asked about, and continues with their turn. */
  async #answer(tool: string, state: TurnState, call: ToolCall): Promise<Result> {
    if (state.tool !== tool) throw new NotFoundError("the requestState belongs to another tool");
    const followed = await this.#turn(state.turnId);
    const responses = call.context.mcpReq.inputResponses;
    const notes: string[] = [];
    let asks = true;
    for (const [key, asked] of Object.entries(state.requests)) {
      const read = readResponse(asked, this.#settings.sdk.server.inputResponse(responses, key));
      if ("decision" in read) notes.push(...(await this.#decide(asked.id, read.decision)));
      // A person who left the form is not asked again by the same call.
      else if (read.undone === "cancelled") asks = false;
    }
    return await this.#follow(followed, { ...usual, tool, notes, asks, isOwn: tool !== TURN_RESULT }, call);
  }

  /** Returns a sentence if another decision was made before. */
  async #decide(requestId: string, decision: WantedDecision): Promise<readonly string[]> {
    const { caller } = this.#side;
    if (decision.verdict === "provided" && caller.auth.credentials !== undefined) {
      const { rootAgentId } = await caller.request(requestId);
      await (await caller.root(rootAgentId)).resume({ auth: caller.auth });
      return [];
    }
    try {
      await caller.decideOnce(requestId, decision, (request) => isAlike(request, decision));
      return [];
    } catch (error) {
      if (!(error instanceof RequestConflictError) && !isKeyReused(error)) throw error;
      return [outcomeOf(await caller.request(requestId))];
    }
  }

  /** Waits until the turn ends or waits for a person, at most for the call's time. */
  async #follow(followed: Followed, following: Following, call: ToolCall): Promise<Result> {
    const { caller } = this.#side;
    const { notes, isOwn } = following;
    const { signal } = call.context.mcpReq;
    const cancel = (): void => this.#cancel(followed, following, signal);
    if (isOwn) signal.addEventListener("abort", cancel, { once: true });
    if (isOwn && signal.aborted) cancel();
    const { context } = call;
    const stopProgress = notifyProgress(caller, followed, { context, isFresh: following.isFresh });
    let isAsking = false;
    try {
      const canAsk = following.asks && canElicit(call.capabilities);
      // A client that cannot ask a person waits for a decision that is made elsewhere.
      const rest = await this.#rest(followed, following.tool === TURN_RESULT && !canAsk);
      const ids = idsOf(caller, followed);
      if (rest === undefined) return withNotes(workingResult(ids), notes);
      if ("stopReason" in rest) return withNotes(endedResult(rest, ids), notes);
      const requests = rest.reason === "request" ? rest.requests : [];
      if (requests.length > 0 && canAsk) {
        isAsking = call.context.mcpReq.envelope === undefined;
        return await this.#asking(followed, requests, { tool: following.tool, context: call.context });
      }
      return withNotes(waitingResult(requests, ids), notes);
    } finally {
      await stopProgress();
      // In the legacy era, the call stays open while its client asks a person, and can be cancelled meanwhile.
      if (!isAsking) signal.removeEventListener("abort", cancel);
    }
  }

  /** The turn at rest; `undefined` if it still works at the end of the call's time. `untilEnd`: waits on while it rests. */
  async #rest({ turn }: Followed, untilEnd: boolean): Promise<TurnRest | undefined> {
    const { clock } = this.#side;
    const until = clock.elapsed() + this.#settings.waitMs;
    let last: TurnRest | undefined;
    for (;;) {
      const settled = await this.#side.within(turn.settled, Math.max(0, until - clock.elapsed()));
      if (settled === undefined) return last;
      const rest = settled.value;
      if ("stopReason" in rest) return rest;
      // A turn whose requests were just decided rests without open requests until it continues.
      const isDecided = rest.reason === "request" && rest.requests.length === 0;
      if (!untilEnd && !isDecided) return rest;
      last = isDecided ? undefined : rest;
    }
  }

  async #asking(
    { turnId }: Followed,
    requests: readonly AgentRequest[],
    { tool, context }: { readonly tool: string; readonly context: ServerContext },
  ): Promise<InputRequiredResult> {
    const { sdk, stateKey } = this.#settings;
    const { inputRequired } = sdk.server;
    const keyed = requests.map((request) => [urlIdOf(request.requestId), request] as const);
    const asked = keyed.map(
      ([key, { requestId: id, argumentsHash: hash, kind }]) => [key, { id, hash, kind }] as const,
    );
    const state: TurnState = { tool, turnId, requests: Object.fromEntries(asked) };
    return inputRequired({
      inputRequests: Object.fromEntries(keyed.map(([key, request]) => [key, inputRequired.elicit(formOf(request))])),
      requestState: await stateCodec(sdk, this.#side.caller, stateKey).mint(state, context),
    });
  }

  /** A cancelled call aborts its turn. A lost connection does so only if the client cannot repeat the call. */
  #cancel({ turn }: Followed, { hasKey }: Following, signal: AbortSignal): void {
    const isLost = signal.reason instanceof this.#settings.sdk.server.SdkError;
    if (isLost && (hasKey || !this.#side.lossCancels)) return;
    turn.abort("cancelled by its client").catch(() => undefined);
  }

  /** Turns errors into results that do not contain the operator's details. */
  async #readable<R extends Result>(work: () => Promise<R>): Promise<R | CallToolResult> {
    const result = this.#attempt(work);
    this.#side.track?.(result);
    return await result;
  }

  async #attempt<R extends Result>(work: () => Promise<R>): Promise<R | CallToolResult> {
    try {
      return await work();
    } catch (error) {
      const { status, message } = failureOf(error);
      if (status >= 500) {
        process.emitWarning(`a call over MCP failed: ${wordsOfThrown(error)}`, { code: "TROUPE_MCP_CALL_FAILED" });
      }
      return errorResult(message);
    }
  }
}

/** A call of a tool, as the protocol's server received it. */
export interface ToolCall {
  readonly context: ServerContext;
  /** What the client can do; `undefined` if it has not said so. */
  readonly capabilities: ClientCapabilities | undefined;
}

/** A client that only names URLs cannot show forms; one that names no mode can. */
function canElicit(capabilities: ClientCapabilities | undefined): boolean {
  const { elicitation } = capabilities ?? {};
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

/** The ids of a turn. A conversation without a name, which another surface has started, cannot be continued here. */
function idsOf(caller: Caller, { agent, turnId }: Followed): TurnIds {
  const { agentId, sessionId, definition } = agent;
  const isNamed = sessionId !== null && caller.agentIdOf(definition.name, sessionId) === agentId;
  return { turnId: urlIdOf(turnId), ...(isNamed ? { conversation: sessionId } : {}) };
}

/** The conversation of a call with a key and without a name. */
function conversationOfKey(key: string): string {
  return `call-${createHash("sha256").update(key).digest("hex").slice(0, 32)}`;
}

function traceOf({ mcpReq }: ServerContext): { readonly trace?: TraceHeaders } {
  const { traceparent, tracestate } = (mcpReq._meta ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof traceparent !== "string" || !/^00-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(traceparent)) return {};
  return { trace: typeof tracestate === "string" ? { traceparent, tracestate } : { traceparent } };
}
