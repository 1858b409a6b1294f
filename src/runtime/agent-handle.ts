import { percentOfWindow } from "../actors/index.ts";
import type { AgentDefinition } from "../agents/index.ts";
import { wholeNumberRule } from "../base/index.ts";
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
import { abortWithSignal, type HeardSignal, hearSignal } from "./abort-with-signal.ts";
import type { Activation } from "./activation.ts";
import { messagesOptionsOf, resumeOptionsOf, spawnOptionsOf, textOfCaller } from "./agent-doors.ts";
import { startElsewhere } from "./agent-elsewhere.ts";
import { agentStatusOf, busyText, notStartedText } from "./agent-status.ts";
import { clearAgent } from "./clear-agent.ts";
import { provideAuth } from "./provide-auth.ts";
import { readAgentState, readMessages, readTrace, readTurn } from "./read-agent.ts";
import type { Decide } from "./request-types.ts";
import { requestsBelow } from "./rest-watch.ts";
import type { RuntimeCore } from "./runtime-core.ts";
import { createChild } from "./spawn-by-code.ts";
import { TurnHandle } from "./turn-handle.ts";
import { inputOf, reasonOf, traceOfTurn, turnOptionsOf } from "./turn-door.ts";
import { assertTurnOf, givenTurn } from "./turn-ids.ts";
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
import { wakeUp } from "./wake-up.ts";

interface OpeningOptions {
  /** It is the agent's first turn, or none. */
  readonly isFirst?: boolean | undefined;
  readonly inputMessageIds?: readonly string[] | undefined;
}

interface AcceptOptions extends OpeningOptions {
  readonly heard: HeardSignal | undefined;
}

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
    this.agentId = this.contextId = record.agentId;
    this.#seen = this.#live;
  }

  get state(): AgentStatus {
    const live = this.#live ?? (this.#seen && this.#core.live.lastOf(this.#seen));
    return agentStatusOf(this.#record, live, this.#core.live.isShutDown(this.#key));
  }

  async start(): Promise<void> {
    this.#core.assertOpen();
    if (!this.#runsHere) return void (this.#record = await startElsewhere(this.#core, this.#key));
    const live = await this.#core.live.own(this.#key);
    this.#record = live.identity;
    wakeUp(live);
    await this.#core.live.intake(live);
    // Lost meanwhile: either it lives here anew, or another process has it, and that is what is told.
    if (live.isLost) await this.#core.live.activate(this.#key);
    else await live.committed();
  }

  executeTurn(input: Content | null, options?: TurnOptions): Turn {
    return this.executeTurnOver(input, options);
  }

  /** As `executeTurn`; without an input of its own, its input is what these messages of the conversation say. */
  executeTurnOver(input: Content | null, options?: TurnOptions, inputMessageIds?: readonly string[]): Turn {
    return new TurnHandle(
      this.#core,
      this.agentId,
      this.#openTurn(input, options, { inputMessageIds }),
      this.#lookAgain,
    );
  }

  async #openTurn(given: Content | null, options: TurnOptions | undefined, how: OpeningOptions): Promise<string> {
    const input = inputOf(given);
    const checked = turnOptionsOf(options);
    const { signal } = checked;
    const heard = signal && hearSignal(signal);
    try {
      return await this.#acceptTurn(input, checked, { ...how, heard });
    } catch (error) {
      heard?.letGo();
      throw error;
    }
  }

  async #acceptTurn(input: Content | null, options: TurnOptions, { heard, ...how }: AcceptOptions): Promise<string> {
    const { auth, budget, ifBusy = "refuse" } = options;
    const trace = traceOfTurn(options);
    const limits = budget === undefined ? null : limitsOf(budget, this.#core.clock.now());
    this.#core.assertOpen();
    const isAsleep = this.#live?.lifecycle === "created" || this.#core.live.isShutDown(this.#key);
    if (isAsleep) throw this.#notStarted();
    const command = { input, actorId: auth?.actorId ?? null, limits, ifBusy, trace, ...how } as const;
    const outcome = await this.#core.stores.openTurn(this.#key, command, this.#core.clock.now());
    if (outcome.type === "notFound") throw new NotFoundError(`there is no agent "${this.agentId}"`);
    if (outcome.type === "refused") throw this.#notStarted();
    if (outcome.type === "given") return outcome.turnId;
    if (outcome.type === "busy") {
      const { openTurnId } = outcome;
      throw new AgentBusyError(busyText(this.agentId, openTurnId), { details: { openTurnId } });
    }
    // Where nobody runs turns nobody would use them.
    if (auth && this.#runsHere) this.#core.auth.keep(outcome.turnId, auth);
    if (heard) await abortWithSignal(this.#core, outcome.turnId, heard);
    const owner = this.#live ?? (await this.#own());
    if (owner && outcome.type === "opened") this.#core.live.take(owner, outcome.item);
    else if (owner) await this.#core.live.intake(owner);
    this.#tell(outcome.posted, owner);
    if (!owner) [this.#record, this.#seen] = [outcome.record, undefined];
    return outcome.turnId;
  }

  /** Whoever was posted to is told; this agent too, where it does not live here and any process may take it up. */
  #tell(posted: readonly string[], here: Activation | undefined): void {
    const others = posted.filter((agentId) => agentId !== this.agentId);
    const isToBeWoken = !here && this.#core.live.isOthers(this.#key);
    this.#core.live.notify(isToBeWoken ? [this.agentId, ...others] : others);
  }

  /** Takes the agent up here; undefined where others run it: whoever does hears of what came. */
  async #own(): Promise<Activation | undefined> {
    if (!this.#runsHere) return undefined;
    try {
      return await this.#core.live.own(this.#key);
    } catch (error) {
      if (error instanceof AlreadyOwnedError || error instanceof LeaseLostError) return undefined;
      throw error;
    }
  }

  #notStarted(): AgentNotStartedError {
    return new AgentNotStartedError(notStartedText(this.agentId, this.state.status));
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
    return new TurnHandle(this.#core, this.agentId, { turnId, given }, this.#lookAgain);
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
    const activation = (await live.present(this.#key)) ?? (comesBack ? await this.#own() : undefined);
    if (activation) {
      await live.intake(activation);
      if (!activation.isLost) await activation.committed();
    }
    this.#tell(outcome.posted, activation);
    if (!activation) await this.#lookAgain();
  }

  async abort(reason = "aborted by a user"): Promise<void> {
    await abortAgent(this.#core, this.agentId, null, reasonOf(reason, "agent.abort()"));
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
    return await requestsBelow(this.#core.stores, this.#core.tenant, this.agentId);
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
    const [model, live] = [this.#core.definitions.get(this.#record.definition.name)?.model, this.#live];
    const turnId = live?.openTurnId ?? turnIdOf(this.agentId, this.state.turnCount);
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

  getState() {
    const { stores, definitions } = this.#core;
    return readAgentState(stores, this.#key, definitions.get(this.#record.definition.name));
  }

  async spawn(definition: AgentDefinition, input: string, options: SpawnAgentOptions): Promise<SpawnedAgent> {
    const prompt = textOfCaller(input, "agent.spawn(): the child's input");
    const record = await createChild(this.#core, this.#record, definition, spawnOptionsOf(options));
    const agent = new AgentHandle(this.#core, record);
    await agent.start();
    const turn = new TurnHandle(this.#core, agent.agentId, agent.#openTurn(prompt, {}, { isFirst: true }));
    await turn.id;
    return { agent, turn };
  }

  /** Whether its handle has the agent run by this process. */
  get #runsHere(): boolean {
    return this.#core.part.role === "all";
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
