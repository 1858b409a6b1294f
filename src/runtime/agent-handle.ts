import { percentOfWindow } from "../actors/index.ts";
import type { AgentDefinition } from "../agents/index.ts";
import { limitsOf } from "../budget/index.ts";
import {
  AgentBusyError,
  AgentNotStartedError,
  AlreadyOwnedError,
  LeaseLostError,
  NotFoundError,
} from "../errors/index.ts";
import { type AgentRecord, type AgentRequest, type Content, type Message, turnIdOf } from "../state/index.ts";
import { abortAgent } from "./abort-agent.ts";
import { abortWithSignal } from "./abort-with-signal.ts";
import type { Activation } from "./activation.ts";
import { clearAgent } from "./clear-agent.ts";
import { provideAuth } from "./provide-auth.ts";
import { readAgentState, readTrace, readTurn } from "./read-agent.ts";
import type { Decide } from "./request-types.ts";
import { requestsBelow } from "./rest-watch.ts";
import type { RuntimeCore } from "./runtime-core.ts";
import { createChild } from "./spawn-by-code.ts";
import { TurnHandle } from "./turn-handle.ts";
import { assertInput } from "./turn-input.ts";
import type { Turn, TurnOptions } from "./turn-types.ts";
import type {
  Agent,
  AgentStatus,
  GetMessagesOptions,
  PauseOptions,
  ResumeOptions,
  SpawnAgentOptions,
  SpawnedAgent,
} from "./types.ts";
import { pauseAndSave, saveState, shutDownAndSave } from "./unsaved-agent.ts";

/** One durable agent, as its user holds it. Any number of handles may name the same agent. */
export class AgentHandle implements Agent {
  readonly agentId: string;
  readonly contextId: string;
  readonly #core: RuntimeCore;
  #record: AgentRecord;
  /** As this handle last saw it live. */
  #seen: Activation | undefined;

  constructor(core: RuntimeCore, record: AgentRecord) {
    this.#core = core;
    this.#record = record;
    this.agentId = record.agentId;
    this.contextId = record.agentId;
    this.#seen = this.#live;
  }

  get state(): AgentStatus {
    const live = this.#live ?? (this.#seen && this.#core.live.lastOf(this.#seen));
    const { status, turnCount, lastActivity, error } = live?.owned ?? this.#record;
    const { metadata } = this.#record;
    return {
      status: this.#core.live.isShutDown(this.#key) ? "shutdown" : (live?.lifecycle ?? status),
      turnCount,
      lastActivity,
      ...(error ? { error } : {}),
      ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
      openTurnId: live ? live.openTurnId : this.#record.openTurnId,
    };
  }

  async start(): Promise<void> {
    this.#core.assertOpen();
    const live = await this.#core.live.activate(this.#key);
    this.#record = live.identity;
    this.#core.live.wakeUp(live);
    await this.#core.live.intake(live);
    // Lost meanwhile: either it lives here anew, or another process has it, and that is what is told.
    if (live.isLost) await this.#core.live.activate(this.#key);
    else await live.committed();
  }

  executeTurn(input: Content | null, options: TurnOptions = {}): Turn {
    return new TurnHandle(this.#core, this.agentId, this.#openTurn(input, options), this.#lookAgain);
  }

  async #openTurn(input: Content | null, options: TurnOptions, isFirst = false): Promise<string> {
    const { auth, budget, ifBusy, signal } = options;
    assertInput(input);
    const limits = budget === undefined ? null : limitsOf(budget, this.#core.clock.now());
    this.#core.assertOpen();
    const isAsleep = this.#live?.lifecycle === "created" || this.#core.live.isShutDown(this.#key);
    if (isAsleep) throw this.#notStarted();
    const command = { input, actorId: auth?.actorId ?? null, limits, ifBusy: ifBusy ?? "refuse", isFirst } as const;
    const outcome = await this.#core.stores.openTurn(this.#key, command, this.#core.clock.now());
    if (outcome.type === "notFound") throw new NotFoundError(`there is no agent "${this.agentId}"`);
    if (outcome.type === "refused") throw this.#notStarted();
    if (outcome.type === "given") return outcome.turnId;
    if (outcome.type === "busy") {
      throw new AgentBusyError(
        `agent "${this.agentId}" is busy with turn ${outcome.openTurnId}; wait for it, or pass { ifBusy: "queue" } or { ifBusy: "supersede" }`,
        { details: { openTurnId: outcome.openTurnId } },
      );
    }
    if (auth) this.#core.auth.keep(outcome.turnId, auth);
    if (signal) await abortWithSignal(this.#core, outcome.turnId, signal);
    const owner = this.#live ?? (await this.#own());
    if (owner && outcome.type === "opened") this.#core.live.take(owner, outcome.item);
    else if (owner) await this.#core.live.intake(owner);
    this.#core.live.notify(outcome.posted.filter((agentId) => agentId !== this.agentId));
    return outcome.turnId;
  }

  /** Takes the agent up here; undefined when another living process runs it: that one hears of the turn. */
  async #own(): Promise<Activation | undefined> {
    try {
      return await this.#core.live.activate(this.#key);
    } catch (error) {
      if (error instanceof AlreadyOwnedError || error instanceof LeaseLostError) return undefined;
      throw error;
    }
  }

  #notStarted(): AgentNotStartedError {
    return new AgentNotStartedError(
      `agent "${this.agentId}" is ${this.state.status}; call start() before its first turn, and again after shutdown()`,
    );
  }

  openTurn(): Turn | undefined {
    const turnId = this.state.openTurnId;
    return turnId === null ? undefined : this.turn(turnId);
  }

  turn(turnId: string): Turn {
    return new TurnHandle(this.#core, this.agentId, turnId, this.#lookAgain);
  }

  async pause(options: PauseOptions = {}): Promise<void> {
    await pauseAndSave(this.#core, this.#key, options);
  }

  async resume({ auth }: ResumeOptions = {}): Promise<void> {
    this.#core.assertOpen();
    if (auth) await provideAuth(this.#core, this.agentId, auth);
    const { stores, clock, live } = this.#core;
    const outcome = await stores.resume(this.#key, "user", clock.now());
    if (outcome.type === "notFound") throw new NotFoundError(`there is no agent "${this.agentId}"`);
    const comesBack = outcome.posted.includes(this.agentId) && !live.isShutDown(this.#key);
    const activation = (await live.present(this.#key)) ?? (comesBack ? await this.#own() : undefined);
    if (activation) {
      await live.intake(activation);
      if (!activation.isLost) await activation.committed();
    }
    live.notify(outcome.posted.filter((agentId) => agentId !== this.agentId));
  }

  async abort(reason = "aborted by a user"): Promise<void> {
    await abortAgent(this.#core, this.agentId, null, reason);
  }

  async saveState(): Promise<void> {
    await saveState(this.#core, this.#key);
  }

  async shutdown(): Promise<void> {
    await shutDownAndSave(this.#core, this.#key);
    await this.#lookAgain();
  }

  /** A turn that ended elsewhere, or whose agent has left this process since, is counted here too. */
  readonly #lookAgain = async (): Promise<void> => {
    // What a turn came to is told also while the stores are being closed.
    if (this.#live || this.#core.closed.aborted) return;
    this.#record = (await this.#core.stores.readAgent(this.#key)) ?? this.#record;
    this.#seen = undefined;
  };

  async requests(): Promise<AgentRequest[]> {
    const { stores, tenant } = this.#core;
    return await requestsBelow(stores, tenant, this.agentId);
  }

  async decide(requestId: string, decide: Decide): Promise<AgentRequest> {
    this.#core.assertOpen();
    const { rootAgentId } = await this.#core.desk.find(requestId);
    if (rootAgentId !== this.#record.rootAgentId) {
      throw new NotFoundError(`request "${requestId}" is none of agent "${this.agentId}" or its tree`);
    }
    return await this.#core.desk.decide(requestId, decide);
  }

  async contextPercent(): Promise<number | null> {
    const { stores, definitions } = this.#core;
    const live = this.#live;
    const turnId = live?.openTurnId ?? turnIdOf(this.agentId, this.state.turnCount);
    const turn = live?.turn(turnId) ?? (await readTurn(stores, this.#key, turnId));
    const model = definitions.get(this.#record.definition.name)?.model;
    return turn && model ? percentOfWindow(turn, model.contextWindow) : null;
  }

  async clear(): Promise<void> {
    await clearAgent(this.#core, this.#key, "all");
  }

  async resetConversation(): Promise<void> {
    await clearAgent(this.#core, this.#key, "conversation");
  }

  async getMessages(options: GetMessagesOptions = {}): Promise<Message[]> {
    const { maxMessages, withoutTrace } = options;
    const messages = await this.#core.stores.messages(this.#key, withoutTrace ? {} : { maxMessages });
    if (!withoutTrace) return messages;
    const kept = messages.filter(({ metadata }) => !metadata?.is_trace);
    return maxMessages === undefined ? kept : kept.slice(-maxMessages);
  }

  getArtifacts() {
    return this.#core.stores.artifacts(this.#key);
  }

  async getArtifact(idOrName: string, version?: number) {
    const { stores } = this.#core;
    const byId = version === undefined ? await stores.artifact(this.#key, idOrName) : undefined;
    return byId ?? (await stores.artifactByName(this.#key, idOrName, version));
  }

  getTrace(turnId?: string) {
    return readTrace(this.#core.stores, this.#key, turnId);
  }

  getState() {
    const { stores, definitions } = this.#core;
    return readAgentState(stores, this.#key, definitions.get(this.#record.definition.name));
  }

  async spawn(definition: AgentDefinition, input: string, options: SpawnAgentOptions): Promise<SpawnedAgent> {
    const record = await createChild(this.#core, this.#record, definition, options);
    const agent = new AgentHandle(this.#core, record);
    await agent.start();
    const turn = new TurnHandle(this.#core, agent.agentId, agent.#openTurn(input, {}, true));
    await turn.id;
    return { agent, turn };
  }

  get #key() {
    return this.#core.keyOf(this.agentId);
  }

  get #live(): Activation | undefined {
    const live = this.#core.live.get(this.#key);
    if (live) this.#seen = live;
    return live;
  }
}
