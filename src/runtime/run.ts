import { type AgentDefinition, definitionRule } from "../agents/index.ts";
import { type OptionsSchema, flagRule, functionRule, idRule, optionsIn, optionsOf, workingOn } from "../base/index.ts";
import type { Budget } from "../budget/index.ts";
import { AgentBusyError, RequestConflictError, TerminalError } from "../errors/index.ts";
import type { AgentRequest, CallSettings, Content, TroupeEvent } from "../state/index.ts";
import type { Auth } from "../tools/index.ts";
import { abortWithSignal, hearSignal } from "./handles/open-turn.ts";
import { createRuntime } from "./create-runtime.ts";
import { definitionsRule, insteadOfRole, runtimeSettingsRules } from "./api/runtime-options.ts";
import { turnOptions } from "./api/turn-options.ts";
import type { Decide, Agent } from "./api/agent-types.ts";
import type { Turn, TurnResult, WaitingTurn } from "./api/turn-types.ts";
import type { Runtime, RuntimeSettings } from "./api/runtime-types.ts";

/** Options of `run()`: those of `createRuntime()` except `role` and `work`, and those of the one turn. */
export interface RunOptions extends RuntimeSettings {
  /** With `stores`, the same id refers to the same agent with its history. Default: a random UUID. */
  readonly agentId?: string | undefined;
  /** Limits of a new turn; each replaces the definition's limit of the same name. Default: the definition's. */
  readonly budget?: Budget | undefined;
  /** Settings of the model calls of a new turn. Default: those of the definition. */
  readonly settings?: CallSettings | undefined;
  /** The actor of the turn, with credentials for its tools, which are never stored. Default: none. */
  readonly auth?: Auth | undefined;
  /** Aborting it ends the turn with status `stopped`. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** Definitions that tools spawn by code. Those of `subagent()` tools are known without it. Default: none. */
  readonly agents?: readonly AgentDefinition[] | undefined;
  /**
   * Called with every event of the turn and of its subagents. An error that it throws ends the run. Default: events are not
   * delivered.
   */
  readonly onEvent?: ((event: TroupeEvent) => void) | undefined;
  /**
   * Called once for each request that the turn waits for: an approval, a question, a client tool. Returns the decision;
   * `undefined` leaves the request open, and if no other work can continue the run rejects with `TurnWaitingError`. Default:
   * every request stays open.
   */
  readonly decide?: ((request: AgentRequest) => Decide | undefined | Promise<Decide | undefined>) | undefined;
  /**
   * `true`: a turn that ended `failed` rejects with `TurnFailedError`. `false`: the turn is returned as a result with its
   * `error`.
   * Default `true`.
   */
  readonly throwOnFailure?: boolean | undefined;
}

const runOptionsSchema: OptionsSchema<RunOptions> = {
  rules: {
    ...runtimeSettingsRules,
    budget: turnOptions.rules.budget,
    settings: turnOptions.rules.settings,
    auth: turnOptions.rules.auth,
    signal: turnOptions.rules.signal,
    agentId: idRule,
    agents: definitionsRule,
    onEvent: functionRule,
    decide: functionRule,
    throwOnFailure: flagRule,
  },
  instead: { ...turnOptions.instead, ...insteadOfRole, store: "stores", contextId: "agentId", onRequest: "decide" },
};

/** The turn of a `run()` failed. `result` is the turn's result; `cause` is the thrown error, or its stored error. */
export class TurnFailedError extends TerminalError {
  readonly code = "turn_failed";
  readonly #result: TurnResult;

  constructor(definition: AgentDefinition, result: TurnResult) {
    const { agentId, turnId, error, stopReason } = result;
    super(`the turn of agent "${definition.name}" failed: ${error?.message ?? stopReason}`, {
      details: { definition: definition.name, agentId, turnId, reason: error?.code ?? stopReason },
      cause: error?.cause ?? error ?? undefined,
    });
    this.#result = result;
  }

  /** Status, errors, spending and text of the turn. Not an own property, so that printing the error does not print it. */
  get result(): TurnResult {
    return this.#result;
  }
}

/**
 * The turn waits for a decision, and `run()` has no answer. With `stores` it stays open there: decide its requests through a
 * runtime on the same stores, and continue it with `run(definition, null, { stores, agentId })`.
 */
export class TurnWaitingError extends TerminalError {
  readonly code = "turn_waiting";
  readonly agentId: string;
  readonly turnId: string;
  /** Requests that wait for a decision; empty if the agent is paused. */
  readonly requests: readonly AgentRequest[];

  constructor(agentId: string, rest: WaitingTurn, isStored: boolean) {
    const requests = rest.reason === "request" ? rest.requests : [];
    super(waitingText(agentId, rest, isStored), { details: { agentId, turnId: rest.turnId, waitsFor: rest.reason } });
    this.agentId = agentId;
    this.turnId = rest.turnId;
    this.requests = requests;
  }
}

function waitingText(agentId: string, rest: WaitingTurn, isStored: boolean): string {
  if (rest.reason === "paused") {
    return `turn ${rest.turnId} waits: agent "${agentId}" is paused; call resume() on it through createRuntime()`;
  }
  const asked = rest.requests.map(({ requestId, kind, name }) => `${kind} of "${name}" (${requestId})`).join(", ");
  const later = isStored
    ? `decide on the same stores (createRuntime() and runtime.decide()), then call run() again with null as input`
    : `pass it stores, so that the turn stays open for a decision`;
  return `turn ${rest.turnId} waits for a decision: ${asked}; pass run() a function "decide", or ${later}`;
}

/**
 * The shortest program: runs one turn of an agent in a private runtime, returns its result, and then closes everything, even if
 * the turn fails. A turn stopped by a limit, a person, a hook or its signal is a result with status `stopped`. With `null` as
 * input it continues the open turn of a stored agent; if none is open, it continues the conversation without a new message.
 *
 * Rejects with `TurnFailedError` if the turn fails (unless `throwOnFailure` is `false`), `TurnWaitingError` if it waits for a
 * decision, `AgentBusyError` if there is input and the stored agent has an open turn, `InvalidInputError` for invalid options,
 * and with errors of the stores.
 */
export async function run<Output>(
  definition: AgentDefinition<Output>,
  input: Content | null,
  given?: RunOptions,
): Promise<TurnResult<Output>> {
  definitionRule(definition, "run(): its definition");
  const options = optionsOf<RunOptions>(given, "run()", runOptionsSchema);
  const { agentId, agents = [], auth, resolveAuth } = options;
  const runtime = await createRuntime({
    recovers: "own",
    ...optionsIn(options, runtimeSettingsRules),
    agents: [definition, ...agents],
    resolveAuth: auth ? (request) => (request.actorId === auth.actorId ? auth : resolveAuth?.(request)) : resolveAuth,
  });
  try {
    const agent = await runtime.agent(definition, { agentId });
    const turn = await begunTurn(agent, input, options);
    const heard = options.onEvent && tellAll(turn, options.onEvent);
    const [result] = await Promise.all([resultOf(runtime, agent, turn, options), heard]);
    if (result.status === "failed" && options.throwOnFailure !== false) throw new TurnFailedError(definition, result);
    return result;
  } finally {
    await runtime.shutdown();
  }
}

/** Checks for an open turn before the agent is started, because the start would continue that turn. */
async function begunTurn<Output>(
  agent: Agent<Output>,
  input: Content | null,
  { budget, settings, auth, signal }: RunOptions,
): Promise<Turn<Output>> {
  const { openTurnId } = agent.state;
  if (input !== null && openTurnId !== null) {
    throw new AgentBusyError(
      `agent "${agent.agentId}" has an open turn, ${openTurnId}; continue it first by calling run() with null as input`,
      { details: { openTurnId } },
    );
  }
  await agent.start();
  const open = input === null ? agent.openTurn() : undefined;
  if (!open) return agent.executeTurn(input, { budget, settings, auth, signal });
  if (signal) {
    const turns = { abort: (_: string, reason: string) => open.abort(reason), end: () => open.result };
    await abortWithSignal(turns, await open.id, hearSignal(signal, "run(): signal"));
  }
  return open;
}

async function tellAll(events: AsyncIterable<TroupeEvent>, onEvent: (event: TroupeEvent) => void): Promise<void> {
  for await (const event of events) onEvent(event);
}

/** Stands for a decision if the turn has ended meanwhile. */
const turnEnded: unique symbol = Symbol("turn ended");

async function resultOf<Output>(
  runtime: Runtime,
  agent: Agent<Output>,
  turn: Turn<Output>,
  { decide, signal, stores, clock }: RunOptions,
): Promise<TurnResult<Output>> {
  const asked = new Set<string>();
  for (;;) {
    const rest = await turn.settled;
    if (rest.status !== "waiting") return rest;
    if (signal?.aborted) return await turn.result;
    const requests = rest.reason === "request" ? rest.requests : [];
    let isDecided = false;
    for (const request of decide ? requests.filter(({ requestId }) => !asked.has(requestId)) : []) {
      asked.add(request.requestId);
      // `decide` may never answer; an abort still ends the turn.
      const deciding = decide && workingOn(clock, () => decide(request));
      const answer = await Promise.race([deciding, turn.result.then((): typeof turnEnded => turnEnded)]);
      if (answer === undefined) continue;
      if (answer === turnEnded) return await turn.result;
      await decideOnce(runtime, request.requestId, answer);
      isDecided = true;
    }
    if (!isDecided) throw new TurnWaitingError(agent.agentId, rest, stores !== undefined);
  }
}

/** Another caller may have decided first, or the request may have expired; the turn continues in both cases. */
async function decideOnce(runtime: Runtime, requestId: string, decision: Decide): Promise<void> {
  try {
    await runtime.decide(requestId, decision);
  } catch (error) {
    if (!(error instanceof RequestConflictError)) throw error;
  }
}
