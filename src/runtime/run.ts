import { type AgentDefinition, definitionRule } from "../agents/index.ts";
import { type Door, functionRule, idRule, optionsOf } from "../base/index.ts";
import type { Budget } from "../budget/index.ts";
import { AgentBusyError, RequestConflictError, TerminalError } from "../errors/index.ts";
import type { AgentRequest, Content, TroupeEvent } from "../state/index.ts";
import type { Stores } from "../stores/index.ts";
import type { Auth } from "../tools/index.ts";
import { abortWithSignal, hearSignal } from "./handles/open-turn.ts";
import { createRuntime } from "./create-runtime.ts";
import { definitionsRule, storesRule } from "./doors/runtime-doors.ts";
import { turnDoor } from "./doors/turn-door.ts";
import type { Decide, Agent } from "./doors/agent-types.ts";
import type { Turn, TurnResult, WaitingTurn } from "./doors/turn-types.ts";
import type { Runtime } from "./doors/runtime-types.ts";

export interface RunOptions {
  /** The stores for the agent; they are closed after the run. Default: memory, so that nothing is left afterwards. */
  readonly stores?: Stores | undefined;
  /** With `stores`, the same id is the same agent with its history. Default: a random UUID. */
  readonly agentId?: string | undefined;
  /** Limits of a new turn; each replaces the definition's limit of the same name. */
  readonly budget?: Budget | undefined;
  /** The actor of the turn, with credentials for its tools. */
  readonly auth?: Auth | undefined;
  /** Aborting it ends the turn with status `stopped`. */
  readonly signal?: AbortSignal | undefined;
  /** Definitions that tools spawn by code. Those of `subagent()` tools need not be named. */
  readonly agents?: readonly AgentDefinition[] | undefined;
  /** Called with every event of the turn and of its subagents. An error that it throws ends the run. */
  readonly onEvent?: ((event: TroupeEvent) => void) | undefined;
  /**
   * Called once for each request that the turn waits for: an approval, a question, a client tool. Returns the decision;
   * `undefined` leaves the request open, and if nothing else can go on the run rejects with `TurnWaitingError`.
   */
  readonly decide?: ((request: AgentRequest) => Decide | undefined | Promise<Decide | undefined>) | undefined;
}

const runDoor: Door<RunOptions> = {
  rules: {
    budget: turnDoor.rules.budget,
    auth: turnDoor.rules.auth,
    signal: turnDoor.rules.signal,
    stores: storesRule,
    agentId: idRule,
    agents: definitionsRule,
    onEvent: functionRule,
    decide: functionRule,
  },
  instead: { ...turnDoor.instead, store: "stores", contextId: "agentId", onRequest: "decide" },
};

/**
 * The turn waits for a decision that `run()` was not given. With `stores` it stays open there: decide its requests
 * through a runtime on the same stores, and carry it on with `run(definition, null, { stores, agentId })`.
 */
export class TurnWaitingError extends TerminalError {
  readonly code = "turn_waiting";
  readonly agentId: string;
  readonly turnId: string;
  /** Requests that somebody has to decide; empty when the agent is paused. */
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
    ? `decide on the same stores (createRuntime() and runtime.decide()), then call run() again with null as its input`
    : `with stores in its options the turn would stay open until somebody decides`;
  return `turn ${rest.turnId} waits for somebody: ${asked}; give run() a function "decide", or ${later}`;
}

/**
 * The shortest program: runs one turn of an agent in a private runtime, returns its result, and then closes everything,
 * even if the turn fails. A turn that ended `stopped` or `failed` is a result. With `null` as input it carries on the
 * open turn of a stored agent; if there is none, it continues the conversation without a new message.
 *
 * Rejects with `InvalidInputError` for invalid options, `AgentBusyError` when there is input and the stored agent has
 * an open turn, `TurnWaitingError` when the turn waits for somebody, and with errors of the stores.
 */
export async function run(definition: AgentDefinition, input: Content | null, given?: RunOptions): Promise<TurnResult> {
  definitionRule(definition, "run(): its definition");
  const options = optionsOf<RunOptions>(given, "run()", runDoor);
  const { stores, agentId, auth, agents = [] } = options;
  const runtime = await createRuntime({
    agents: [definition, ...agents],
    stores,
    resolveAuth: auth && (({ actorId }) => (actorId === auth.actorId ? auth : undefined)),
  });
  try {
    const agent = await runtime.agent(definition.name, { agentId });
    const turn = await begunTurn(agent, input, options);
    const heard = options.onEvent && tellAll(turn, options.onEvent);
    const [result] = await Promise.all([resultOf(runtime, agent, turn, options), heard]);
    return result;
  } finally {
    await runtime.shutdown();
  }
}

/** Checks for an open turn before the agent's start, which would carry that turn on. */
async function begunTurn(agent: Agent, input: Content | null, { budget, auth, signal }: RunOptions): Promise<Turn> {
  const { openTurnId } = agent.state;
  if (input !== null && openTurnId !== null) {
    throw new AgentBusyError(
      `agent "${agent.agentId}" has an open turn, ${openTurnId}; carry it on first: run() with null as its input`,
      { details: { openTurnId } },
    );
  }
  await agent.start();
  const open = input === null ? agent.openTurn() : undefined;
  if (!open) return agent.executeTurn(input, { budget, auth, signal });
  if (signal) {
    const turns = { abort: (_: string, reason: string) => open.abort(reason), end: () => open.result };
    await abortWithSignal(turns, await open.id, hearSignal(signal, "run(): signal"));
  }
  return open;
}

async function tellAll(events: AsyncIterable<TroupeEvent>, onEvent: (event: TroupeEvent) => void): Promise<void> {
  for await (const event of events) onEvent(event);
}

async function resultOf(
  runtime: Runtime,
  agent: Agent,
  turn: Turn,
  { decide, signal, stores }: RunOptions,
): Promise<TurnResult> {
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
      const answer = await Promise.race([decide?.(request), turn.result.then((ended) => ({ ended }))]);
      if (answer === undefined) continue;
      if ("ended" in answer) return answer.ended;
      await decideOnce(runtime, request.requestId, answer);
      isDecided = true;
    }
    if (!isDecided) throw new TurnWaitingError(agent.agentId, rest, stores !== undefined);
  }
}

/** Somebody else may have decided first, or the request may have expired; the turn goes on in both cases. */
async function decideOnce(runtime: Runtime, requestId: string, decision: Decide): Promise<void> {
  try {
    await runtime.decide(requestId, decision);
  } catch (error) {
    if (!(error instanceof RequestConflictError)) throw error;
  }
}
