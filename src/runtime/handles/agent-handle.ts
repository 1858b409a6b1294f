import { percentOfWindow } from "../../actors/index.ts";
import type { AgentDefinition } from "../../agents/index.ts";
import { wholeNumberRule } from "../../base/index.ts";
import type { BudgetChange } from "../../budget/index.ts";
import { AlreadyOwnedError, InvariantError, LeaseLostError, NotFoundError } from "../../errors/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type AgentRequest,
  type Content,
  type Message,
  statusOf,
  turnIdOf,
} from "../../state/index.ts";
import { currentProcess, type ProcessIdentity } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { ShownStatus, AgentStatusView } from "../agent/actor-tree.ts";
import { wakeUp } from "../agent/intake.ts";
import { abortAgent, type RuntimeCore } from "../core/runtime-core.ts";
import { messagesOptionsOf, resumeOptionsOf, spawnOptionsOf, textOfCaller } from "../api/agent-options.ts";
import type {
  Agent,
  AgentStatus,
  Decide,
  GetMessagesOptions,
  PauseOptions,
  ResumeOptions,
  SpawnAgentOptions,
  SpawnedAgent,
} from "../api/agent-types.ts";
import { reasonOf, steerOptionsOf } from "../api/turn-options.ts";
import type { SteerAnswer, SteerOptions, Turn, TurnOptions, TurnResult } from "../api/turn-types.ts";
import { requestsBelow } from "../follow/rest-watch.ts";
import { type AcceptedTurn, TurnHandle, type TurnHandleEvents } from "../follow/turn-handle.ts";
import { isElsewhere } from "../placement/recovery.ts";
import {
  clearAgent,
  createChild,
  pauseAndSave,
  provideAuth,
  saveState,
  setBudget,
  shutDownAndSave,
  startElsewhere,
} from "./agent-lifecycle.ts";
import { assertTurnOf, givenTurn, type OpenedTurn, openTurn, type TurnAsked } from "./open-turn.ts";
import { readAgentState, readMessages, readStubReport, readTrace, readTurn } from "./read-agent.ts";

/** A user's handle on one durable agent. Any number of handles may refer to the same agent. */
export class AgentHandle implements Agent {
  readonly agentId: string;
  readonly #core: RuntimeCore;
  readonly #local: LocalAgent;
  #record: AgentRecord;
  #definition: Agent["definition"] | undefined;
  /** When the record was requested, from `performance.now()`. */
  #recordAt = performance.now();

  constructor(core: RuntimeCore, record: AgentRecord) {
    this.#core = core;
    this.#record = record;
    this.agentId = record.agentId;
    this.#local = new LocalAgent(core, record.agentId);
    // Keeps the current status, because the agent may leave memory before the state is read.
    void this.#local.standing;
  }

  // Immutable fields are read from the record instead of being copied, because a process may hold very many handles.
  get contextId(): string {
    return this.agentId;
  }

  get rootAgentId(): string {
    return this.#record.rootAgentId;
  }

  get ownerId(): string | null {
    return this.#record.ownerId;
  }

  get sessionId(): string | null {
    return this.#record.sessionId;
  }

  get isStubbed(): boolean {
    return this.#record.stubs !== undefined;
  }

  get createdAt(): number {
    return this.#record.createdAt;
  }

  get definition(): Agent["definition"] {
    const { name, hash } = this.#record.definition;
    return (this.#definition ??= Object.freeze({ name, version: hash }));
  }

  get state(): AgentStatus {
    return agentStatusOf(this.#record, this.#local.stand, this.#core.live.isShutDown(this.#key));
  }

  async start(): Promise<void> {
    this.#core.assertOpen();
    if (!this.#local.runsHere) return void (this.#record = await startElsewhere(this.#core, this.#key));
    const wasHere = this.#local.live !== undefined;
    const below = this.#core.live.reopen(this.#key);
    const live = await this.#core.live.own(this.#key);
    wakeUp(live);
    // An agent that was just activated has already read its inbox.
    if (wasHere || live.mayHaveMore) await this.#core.live.drainInbox(live);
    // If the agent was lost meanwhile, activating it again either works or throws because another process owns it.
    const here = live.isLost ? await this.#core.live.activate(this.#key) : live;
    if (here === live) await live.committed();
    this.#core.notify(below);
    // This record is as old as the activation, and turns may have ended since: the live status takes precedence.
    this.#record = here.identity;
    await this.#lookAgain();
  }

  executeTurn(input: Content | null, options?: TurnOptions): Turn {
    return this.execute({ input, options });
  }

  /** Like `executeTurn`, with options that only internal callers use. */
  execute(asked: TurnAsked): Turn {
    return new TurnHandle(this.#core, this.agentId, this.#openTurn(asked), this.#events);
  }

  async #openTurn(asked: TurnAsked): Promise<AcceptedTurn> {
    const { turnId, isReplayed } = await this.#open(asked);
    return { turnId, isReplayed };
  }

  async #open(asked: TurnAsked): Promise<OpenedTurn> {
    const place = { core: this.#core, local: this.#local, status: () => this.state.status, record: this.#record };
    const open = (): Promise<OpenedTurn> => openTurn(place, asked);
    const opened = this.#local.runsHere ? await open() : await this.#core.opening(this.agentId, open);
    const { record } = opened;
    if (record) this.#saw(record, performance.now());
    return opened;
  }

  async steer(input: Content, options?: SteerOptions): Promise<SteerAnswer> {
    return await this.#steer(undefined, input, options);
  }

  async #steer(turnId: string | undefined, input: Content, given: SteerOptions | undefined): Promise<SteerAnswer> {
    const options = { ...steerOptionsOf(given), ifBusy: "steer" } as const;
    const { answer } = await this.#open({ input, options, steersTurnId: turnId });
    if (!answer) throw new InvariantError("a command that steers a turn has no answer");
    return answer;
  }

  openTurn(): Turn | undefined {
    const turnId = this.state.openTurnId;
    return turnId === null ? undefined : this.#turn(turnId, Promise.resolve(turnId));
  }

  turn(turnId: string): Turn {
    assertTurnOf(this.agentId, turnId);
    return this.#turn(turnId, givenTurn(this.#core, this.agentId, turnId));
  }

  #turn(turnId: string, given: Promise<string>): Turn {
    return new TurnHandle(this.#core, this.agentId, { turnId, given }, this.#events);
  }

  get #events(): TurnHandleEvents {
    return {
      onEnd: (result) => this.#lookAgain(result),
      steer: (turnId, input, options) => this.#steer(turnId, input, options),
    };
  }

  async pause(options?: PauseOptions): Promise<void> {
    await pauseAndSave(this.#core, this.#key, options);
    await this.#lookAgain();
  }

  async resume(options?: ResumeOptions): Promise<void> {
    const { auth } = resumeOptionsOf(options);
    this.#core.assertOpen();
    if (auth) await provideAuth(this.#core, this.agentId, auth);
    const { stores, clock, live } = this.#core;
    const outcome = await stores.resume(this.#key, "user", clock.now());
    if (outcome.type === "notFound") throw new NotFoundError(`there is no agent "${this.agentId}"`);
    const comesBack = outcome.posted.includes(this.agentId) && !live.isShutDown(this.#key);
    const activation = (await live.present(this.#key)) ?? (comesBack ? await this.#local.own() : undefined);
    if (activation) {
      await live.drainInbox(activation);
      if (!activation.isLost) await activation.committed();
    }
    this.#local.tell(outcome.posted, activation);
    if (!activation) await this.#lookAgain();
  }

  async setBudget(budget: BudgetChange): Promise<void> {
    const posted = await setBudget(this.#core, this.#key, budget);
    const activation = await this.#core.live.present(this.#key);
    if (activation) {
      await this.#core.live.drainInbox(activation);
      if (!activation.isLost) await activation.committed();
    }
    this.#local.tell(posted, activation);
  }

  async abort(reason = "aborted by a user"): Promise<void> {
    const why = reasonOf(reason, "agent.abort()");
    await abortAgent(this.#core, this.agentId, null, why);
  }

  async saveState(): Promise<void> {
    await saveState(this.#core, this.#key);
  }

  async shutdown(): Promise<void> {
    await shutDownAndSave(this.#core, this.#key);
    await this.#lookAgain();
  }

  /**
   * Reads the record again, because the turn may have ended in another process or the agent may have left this one; skipped if
   * the record was read with the turn's result.
   */
  async #lookAgain(result?: TurnResult): Promise<void> {
    // While the stores are being closed, a turn's result is still returned.
    if (this.#local.standing || this.#core.closed.aborted) return;
    const seen = result && this.#core.recordAt(result);
    if (seen && seen.at >= this.#recordAt) return this.#saw(seen.record, seen.at);
    const at = performance.now();
    this.#saw((await this.#core.stores.readAgent(this.#key)) ?? this.#record, at);
  }

  #saw(record: AgentRecord, at: number): void {
    this.#record = record;
    this.#recordAt = at;
    this.#local.forget();
  }

  async requests(): Promise<AgentRequest[]> {
    return await requestsBelow(this.#core.stores, this.#core.tenant, this.agentId);
  }

  async decide(requestId: string, decide: Decide): Promise<AgentRequest> {
    this.#core.assertOpen();
    const { rootAgentId } = await this.#core.requests.find(requestId);
    if (rootAgentId !== this.#record.rootAgentId) {
      throw new NotFoundError(`request "${requestId}" does not belong to the tree of agent "${this.agentId}"`);
    }
    return await this.#core.requests.decide(requestId, decide);
  }

  async contextPercent(): Promise<number | null> {
    const [model, live] = [this.#core.definitions.get(this.#record.definition.name)?.model, this.#live];
    const { openTurnId, turnCount } = this.state;
    const turnId = openTurnId ?? turnIdOf(this.agentId, turnCount);
    const turn = live?.turn(turnId) ?? (await readTurn(this.#core.stores, this.#key, turnId));
    return turn && model ? percentOfWindow(turn, model.contextWindow) : null;
  }

  async clear(): Promise<void> {
    await clearAgent(this.#core, this.#key, "all");
  }

  async resetConversation(): Promise<void> {
    await clearAgent(this.#core, this.#key, "conversation");
  }

  async getMessages(options?: GetMessagesOptions): Promise<Message[]> {
    return await readMessages(this.#core.stores, this.#key, messagesOptionsOf(options));
  }

  getArtifacts() {
    return this.#core.stores.artifacts(this.#key);
  }

  async getArtifact(idOrName: string, version?: number) {
    textOfCaller(idOrName, "agent.getArtifact(): its id or name");
    if (version !== undefined) wholeNumberRule(1)(version, "agent.getArtifact(): version");
    const { stores } = this.#core;
    const byId = version === undefined ? await stores.artifact(this.#key, idOrName) : undefined;
    return byId ?? (await stores.artifactByName(this.#key, idOrName, version));
  }

  async getTrace(turnId?: string) {
    if (turnId !== undefined) assertTurnOf(this.agentId, turnId);
    return await readTrace(this.#core.stores, this.#key, turnId);
  }

  async getStubs() {
    const { stubs = [], rootAgentId } = this.#record;
    return await readStubReport(this.#core.stores, { tenant: this.#core.tenant, rootAgentId, stubs });
  }

  getState() {
    const { stores, definitions } = this.#core;
    return readAgentState(stores, this.#key, definitions.get(this.#record.definition.name));
  }

  async spawn<Child>(
    definition: AgentDefinition<Child>,
    input: string,
    options: SpawnAgentOptions,
  ): Promise<SpawnedAgent<Child>> {
    const prompt = textOfCaller(input, "agent.spawn(): the child's input");
    const record = await createChild(this.#core, this.#record, definition, spawnOptionsOf(options));
    const agent = new AgentHandle(this.#core, record);
    await agent.start();
    const opening = agent.#openTurn({ input: prompt, isFirst: true });
    const turn = new TurnHandle(this.#core, agent.agentId, opening, agent.#events);
    await turn.id;
    return { agent, turn } as SpawnedAgent<Child>;
  }

  get #key() {
    return this.#local.key;
  }

  get #live(): Activation | undefined {
    return this.#local.live;
  }
}

/**
 * An agent in this process, as used by its handle.
 * Owns: the status that the handle last saw in this process.
 */
class LocalAgent {
  readonly #core: RuntimeCore;
  readonly #agentId: string;
  #seen: AgentStatusView | undefined;

  constructor(core: RuntimeCore, agentId: string) {
    this.#core = core;
    this.#agentId = agentId;
  }

  get key(): AgentKey {
    return this.#core.keyOf(this.#agentId);
  }

  get live(): Activation | undefined {
    return this.#core.live.get(this.key);
  }

  /** `undefined` if this process does not hold the agent's lease. */
  get standing(): AgentStatusView | undefined {
    const standing = this.#core.live.standing(this.key);
    if (standing) this.#seen = standing;
    return standing;
  }

  /** The agent's status, or its last status in this process since `forget()`. */
  get stand(): ShownStatus | undefined {
    return (this.standing ?? this.#seen)?.now;
  }

  /** Drops the last status, because a newer record was read. */
  forget(): void {
    this.#seen = undefined;
  }

  /** Whether this process runs the agents of its handles. */
  get runsHere(): boolean {
    return this.#core.part.role === "all";
  }

  /** Activates the agent in this process; `undefined` if other processes run it, which take its items anyway. */
  async own(): Promise<Activation | undefined> {
    if (!this.runsHere) return undefined;
    try {
      return await this.#core.live.own(this.key);
    } catch (error) {
      if (error instanceof AlreadyOwnedError || error instanceof LeaseLostError) return undefined;
      throw error;
    }
  }

  /**
   * Notifies the agents that have new inbox items; also this agent, if this process does not run it and any process may activate
   * it. `holder`: the process that owned it at the time of the post. If that process lives, the stores notify it.
   */
  tell(posted: readonly string[], here: Activation | undefined, holder?: ProcessIdentity): void {
    const { agentId } = this.key;
    const others = posted.filter((one) => one !== agentId);
    const isHeard = !this.runsHere && isElsewhere(holder, currentProcess(this.#core.processId));
    const isToBeWoken = !here && !isHeard && this.#core.live.isOthers(this.key);
    this.#core.live.notify(isToBeWoken ? [agentId, ...others] : others);
  }
}

/** The status from the agent in this process, or from the last record. */
function agentStatusOf(record: AgentRecord, live: ShownStatus | undefined, isShutDown: boolean): AgentStatus {
  const { turnCount, lastActivity, error } = live ?? record;
  const { metadata } = record;
  return {
    status: isShutDown ? "shutdown" : (live?.lifecycle ?? statusOf(record)),
    turnCount,
    lastActivity,
    ...(error ? { error } : {}),
    ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
    openTurnId: live ? live.openTurnId : record.openTurnId,
  };
}
