import type { Host, TurnMemory, Viewers } from "../../actors/index.ts";
import { type AgentDefinition, spawnLimitOf } from "../../agents/index.ts";
import { type Clock, deepFreeze, readOnlyLists, type TraceHeaders, traceOf } from "../../base/index.ts";
import type { Binding, OuterLimits } from "../../budget/index.ts";
import { type CompileInput, isOfTurn, openTurnStart, viewOf } from "../../context/index.ts";
import type { StoreUnavailableError } from "../../errors/index.ts";
import type { AgentContext } from "../../machines/index.ts";
import type { PriceBook } from "../../model/index.ts";
import type { Queues } from "../../queues/index.ts";
import {
  addressOf,
  type AgentIdentity,
  type Artifact,
  type CallState,
  type Entry,
  isExcerpt,
  isQueuedToSpawn,
  type Lifecycle,
  type Message,
  promptOf,
  textOf,
  type TurnState,
  type WakingReport,
} from "../../state/index.ts";
import type { Committed, Stores } from "../../stores/index.ts";
import type { Auth, ScheduleCaller, Slots, SpawnedChild, TurnSchedules } from "../../tools/index.ts";
import type { ActorTree } from "./actor-tree.ts";
import type { CallsInFlight } from "./calls-in-flight.ts";
import type { Committer } from "./committer.ts";
import type { TurnAuth } from "./turn-auth.ts";
import type { Inspections } from "./inspections.ts";
import { nameOfInput, type TurnContexts } from "./turn-contexts.ts";
import type { TurnFailures } from "./turn-failures.ts";

type Lent = Pick<
  ActivationPorts,
  "prices" | "outer" | "random" | "auth" | "contexts" | "failures" | "slots" | "definitions" | "stores" | "schedulesOf"
>;

/** The readable side of a live agent: the states of its machines, its conversation, and the services of its process. */
export abstract class LiveView {
  readonly prices: Lent["prices"];
  readonly #lent: Lent;

  constructor(lent: Lent) {
    this.prices = lent.prices;
    this.#lent = lent;
  }

  random(): number {
    return this.#lent.random();
  }

  get outerBinding(): Binding {
    return this.#lent.outer.bindingOf(this.identity.ownerId);
  }

  inContextOf<T>(turnId: string, work: () => T): T {
    return this.#lent.contexts.of(turnId).run(work);
  }

  auth(turnId: string): Auth | undefined {
    return this.#lent.auth.of(turnId);
  }

  /** Gives context and credentials of an input to the turn that it has opened. */
  adopt(steerId: string, turnId: string): void {
    const name = nameOfInput(this.identity.agentId, steerId);
    this.#lent.auth.move(name, turnId);
    this.#lent.contexts.move(name, turnId);
  }

  redactorOf(turnId: string): (text: string) => string {
    return this.#lent.auth.redactorOf(turnId);
  }

  noteFailure(turnId: string, error: unknown, source: string | undefined): void {
    this.#lent.failures.note(turnId, { error, source });
  }

  slots(toolName: string, limit: number): Slots {
    return this.#lent.slots(toolName, limit);
  }

  get definitions(): Lent["definitions"] {
    return this.#lent.definitions;
  }

  protected abstract readonly actors: ActorTree;
  abstract readonly identity: AgentIdentity;
  abstract readonly definition: AgentDefinition;
  abstract readonly conversation: Conversation;

  get lifecycle(): Lifecycle {
    return this.actors.lifecycle;
  }

  get isPausing(): boolean {
    return this.actors.isPausing;
  }

  get openTurnId(): string | null {
    return this.actors.context.openTurnId;
  }

  get lastTurnId(): string | null {
    return this.actors.context.lastTurnId;
  }

  /** Running effects. Without any, only an inbox item can make the agent continue. */
  get effects() {
    return this.actors.effects;
  }

  get openChildIds(): readonly string[] {
    return this.actors.context.openChildIds;
  }

  /** Background children whose end has not been reported. */
  get backgroundChildren() {
    return this.actors.context.background;
  }

  /** Reports since the last turn that require a new turn. */
  get waking(): readonly WakingReport[] {
    return this.actors.context.waking;
  }

  get stubUses(): Readonly<Record<string, number>> {
    return this.actors.context.stubUses ?? {};
  }

  get turnEntries(): readonly Entry[] {
    return this.openTurnId === null ? [] : this.conversation.turnEntries;
  }

  /** The state values of all live machines. */
  values() {
    return this.actors.values(this.openTurnId);
  }

  turn(turnId: string): TurnState | undefined {
    return this.actors.turn(turnId);
  }

  call(turnId: string, callId: string): CallState | undefined {
    return this.actors.call(turnId, callId);
  }

  isQueuedToSpawn(callId: string): boolean {
    const { openTurnId } = this;
    const call = openTurnId === null ? undefined : this.call(openTurnId, callId);
    if (!call) return false;
    const tool = this.definition.tools.get(call.name);
    return tool?.kind === "subagent" && isQueuedToSpawn(call, this.turnEntries, spawnLimitOf(tool));
  }

  memory(turnId: string): TurnMemory {
    return this.conversation.memory(turnId);
  }

  traceOf(turnId: string, callId?: string): TraceHeaders | undefined {
    const known = traceOf(this.identity.rootAgentId, callId === undefined ? [turnId] : [callId, turnId]);
    const [first] = this.conversation.turnEntries;
    return known ?? (first?.type === "turn.started" ? first.trace : undefined);
  }

  /** The conversation as visible to the model. */
  history(): readonly Message[] {
    return this.conversation.viewOf(this.actors.context.compaction);
  }

  turnStart(): number | undefined {
    return this.conversation.turnStartOf(this.actors.context.compaction);
  }

  /** The whole conversation. */
  archive(): readonly Message[] {
    return this.conversation.archive;
  }

  lentLists(): Pick<CompileInput, "history" | "earlier"> {
    return this.conversation.lentLists(this.actors.context.compaction);
  }

  hasExcerpts(): boolean {
    return this.conversation.hasExcerpts;
  }

  artifact(artifactId: string): Promise<Artifact | undefined> {
    const { tenant, agentId } = this.identity;
    return this.#lent.stores.artifact({ tenant, agentId }, artifactId);
  }

  artifactByName(name: string): Promise<Artifact | undefined> {
    const { tenant, agentId } = this.identity;
    return this.#lent.stores.artifactByName({ tenant, agentId }, name);
  }

  artifacts(): Promise<readonly Omit<Artifact, "content">[]> {
    const { tenant, agentId } = this.identity;
    return this.#lent.stores.artifacts({ tenant, agentId });
  }

  schedulesOf({ turnId, callId }: Pick<CallState, "turnId" | "callId">): TurnSchedules {
    const { agentId, parentAgentId, definition, ownerId, sessionId, forkedFrom } = this.identity;
    const actorId = this.turn(turnId)?.actorId ?? null;
    const agent = { agentId, parentAgentId, definition: definition.name, ownerId, sessionId };
    return this.#lent.schedulesOf({ ...agent, actorId, turnId, callId, isFork: forkedFrom !== undefined });
  }

  message(messageId: string): Message | undefined {
    return this.conversation.message(messageId);
  }
}

/** The accounts above the roots as this process configures them. */
export interface OuterSource {
  /** The smallest limits above the root. Throws `InvalidInputError` if the owner's limits cannot be read. */
  bindingOf(ownerId: string | null): Binding;
  /** From the owner's to the tenant's. */
  limitsOf(ownerId: string | null): readonly OuterLimits[];
}

/** The ports through which a live agent uses its process. */
export interface ActivationPorts<Live extends Host = Host> {
  readonly clock: Clock;
  readonly prices: PriceBook;
  /** The accounts above the roots. */
  readonly outer: OuterSource;
  readonly stores: Stores;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly queues: Queues;
  readonly processId: string;
  /** Notifies agents that have new inbox items. */
  notify(agentIds: readonly string[]): void;
  readonly committer: Committer;
  random(): number;
  /** Whether a rule restricts who may decide requests; each request records it. */
  readonly guardsRequests: boolean;
  readonly inspections: Inspections;
  slots(toolName: string, limit: number): Slots;
  readonly auth: Pick<TurnAuth, "of" | "redactorOf" | "resolve" | "move">;
  readonly contexts: Pick<TurnContexts, "of" | "move">;
  readonly failures: TurnFailures;
  onCommitted(activation: Live, outcome: Committed): void;
  viewersOf(identity: AgentIdentity): Viewers;
  schedulesOf(caller: ScheduleCaller): TurnSchedules;
  childResult(activation: Live, childId: string): SpawnedChild["result"];
  readonly inFlight: CallsInFlight;
  onLost(activation: Live): void;
  /** Called when the stores temporarily refuse its batch. */
  onRefused(activation: Live, error: StoreUnavailableError): void;
  /** Called when its batch can never be stored; this process does not recover the agent. */
  onFailed(agentId: string, cause: unknown): void;
  /** Called when an effect has ended while its state continues. */
  onEffectOver(activation: Live): void;
  /** The live activation of this agent: this one, or the one that replaced it in this process. */
  successor(activation: Live): Promise<Host>;
}

const readOnly = readOnlyLists(
  "the messages of a conversation are read-only; in a hook use draft.add({ role, content }), draft.edit(id, content) or " +
    "draft.remove(id), anywhere else change a copy, for instance [...messages]",
);

/**
 * The messages of a live agent, and the entries of its open turn. The machines keep only ids and counters; this class keeps the
 * contents while the agent is live, and the store keeps them permanently.
 *
 * Invariants
 * 1. All contents are deeply frozen, because hooks, compilers and model adapters receive these very messages.
 * 2. Its internal lists are lent only to code of this package, which neither changes nor keeps them: copying a long conversation
 *    for each prompt would take longer than the rest of the turn. Other lists that it returns are frozen, and cached until a
 *    message is added.
 */
export class Conversation {
  readonly #history: Message[];
  #archive: readonly Message[] | undefined;
  #view: { readonly compaction: AgentContext["compaction"]; readonly messages: readonly Message[] } | undefined;
  readonly #byId = new Map<string, Message>();
  #turnEntries: Entry[];
  #turnStart: number;
  #hasExcerpts: boolean;

  constructor(history: readonly Message[], turnEntries: readonly Entry[]) {
    this.#history = [];
    this.#hasExcerpts = false;
    for (const message of history) this.#add(message);
    this.#turnEntries = [...turnEntries];
    turnEntries.forEach(deepFreeze);
    const turnId = turnEntries[0] && addressOf(turnEntries[0]).turnId;
    this.#turnStart = turnId ? openTurnStart(this.#history, turnId) : this.#history.length;
  }

  addMessages(messages: readonly Message[]): void {
    for (const message of messages) this.#add(message);
    if (messages.length > 0) this.#forgetLists();
  }

  #add(message: Message): void {
    this.#byId.set(message.id, deepFreeze(message));
    if (isExcerpt(message)) this.#hasExcerpts = true;
    if (message.role !== "user" || message.replaces === undefined) return void this.#history.push(message);
    // Prompts, hooks and compactions see only the new content, under the id of the original.
    const index = this.#history.findLastIndex(({ id }) => id === message.replaces);
    const original = this.#history[index];
    if (original === undefined) return;
    const replaced = deepFreeze({ ...original, content: message.content } as Message);
    this.#history[index] = replaced;
    this.#byId.set(original.id, replaced);
  }

  note(entry: Entry): void {
    deepFreeze(entry);
    if (entry.type === "turn.started") this.#startTurn(entry.turnId);
    if (addressOf(entry).turnId !== null) this.#turnEntries.push(entry);
  }

  /** Drops the entries of a turn that has ended, unless the next one has started. */
  forgetTurn(turnId: string): void {
    const first = this.#turnEntries[0];
    if (first && addressOf(first).turnId === turnId) this.#turnEntries = [];
  }

  message(messageId: string): Message | undefined {
    return this.#byId.get(messageId);
  }

  text(messageId: string): string {
    return textOf(this.#byId.get(messageId)?.content ?? "");
  }

  /** Whether any result is stored as a complete artifact, even if that result is hidden now. */
  get hasExcerpts(): boolean {
    return this.#hasExcerpts;
  }

  /** The whole conversation, oldest first. */
  get archive(): readonly Message[] {
    this.#archive ??= readOnly(this.#history);
    return this.#archive;
  }

  /** The messages visible to the model: those since the last compaction. */
  viewOf(compaction: AgentContext["compaction"]): readonly Message[] {
    if (!compaction) return this.archive;
    if (this.#view?.compaction !== compaction) {
      this.#view = { compaction, messages: readOnly(viewOf(this.#history, compaction)) };
    }
    return this.#view.messages;
  }

  lentLists(compaction: AgentContext["compaction"]): Pick<CompileInput, "history" | "earlier"> {
    return { history: compaction ? this.viewOf(compaction) : this.#history, earlier: this.#history };
  }

  /** Index of the open turn's first message in the view; `undefined` if a compaction has moved it. */
  turnStartOf(compaction: AgentContext["compaction"]): number | undefined {
    return compaction ? undefined : this.#turnStart;
  }

  /** Searches for the turn's first message, because its messages may be added before its entry is noted. */
  #startTurn(turnId: string): void {
    this.#turnEntries = [];
    let start = this.#history.length;
    for (let last = this.#history[start - 1]; last && isOfTurn(last, turnId); last = this.#history[start - 1])
      start -= 1;
    this.#turnStart = start;
  }

  /** Deletes all messages so far. */
  clear(): void {
    this.#turnStart = 0;
    this.#history.length = 0;
    this.#byId.clear();
    this.#hasExcerpts = false;
    this.#forgetLists();
  }

  #forgetLists(): void {
    this.#archive = undefined;
    this.#view = undefined;
  }

  /** The entries of the open turn, or of the turn that ended last until it is forgotten. */
  get turnEntries(): readonly Entry[] {
    return this.#turnEntries;
  }

  memory(turnId: string): TurnMemory {
    return new LiveMemory(turnId, this.#turnEntries, this);
  }
}

/** Almost all callers need only the entries. */
class LiveMemory implements TurnMemory {
  readonly turnId: string;
  readonly entries: readonly Entry[];
  readonly #texts: { text(messageId: string): string };

  constructor(turnId: string, entries: readonly Entry[], texts: { text(messageId: string): string }) {
    this.turnId = turnId;
    this.entries = entries;
    this.#texts = texts;
  }

  get prompt(): string {
    return promptOf(this.entries, (id) => this.#texts.text(id));
  }
}
