import type { FactParts, Host, Proposed, TurnMemory } from "../actors/index.ts";
import type { AgentDefinition } from "../agents/index.ts";
import type { CompileInput } from "../context/index.ts";
import type { Clock } from "../base/index.ts";
import { nothingBinds } from "../budget/index.ts";
import { UnsupportedError } from "../errors/index.ts";
import { PriceBook } from "../model/index.ts";
import { Conversation, EffectNotes, MachineFold } from "../runtime/index.ts";
import type {
  AgentRecord,
  Artifact,
  CallState,
  Entry,
  EntryOf,
  FactBody,
  IntentBody,
  Message,
  TurnState,
} from "../state/index.ts";
import { messagesAddedBy } from "../state/index.ts";

/** What an effect appended while it was repeated. */
export interface Appended {
  readonly entry: Entry;
  readonly messages: readonly Message[];
}

/** Thrown when repeated code asks for an action that the journal does not have. */
export class UnrecordedAction extends UnsupportedError {
  readonly intent: IntentBody;

  constructor(intent: IntentBody) {
    super(`the recording has no ${intent.type} at this point`);
    this.intent = intent;
  }
}

/**
 * The host of a recorded agent: the state of its machines and its conversation before the next recorded entry. Repeated effects read it like a
 * live agent. They act on nothing: what they append is kept for the comparison, and an intent that the journal does not have is refused.
 */
export class ReplayHost implements Host {
  readonly definition: AgentDefinition;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly prices = new PriceBook({});
  readonly outerBinding = nothingBinds;
  readonly isPausing = false;
  readonly isShuttingDown = false;
  readonly clock: Clock;
  readonly #record: AgentRecord;
  readonly #artifacts: ReadonlyMap<string, Artifact>;
  readonly #fold = new MachineFold(null);
  readonly #conversation = new Conversation([], []);
  readonly #appended: Appended[] = [];
  /** The text of an instructions function that the recorded definition did not have. */
  #instructions: EntryOf<"instructions.resolved"> | undefined;
  #notes = new EffectNotes();
  #seq = 0;
  #at = 0;
  epoch = 0;

  constructor(
    record: AgentRecord,
    artifacts: readonly Artifact[],
    { definition, definitions }: Pick<Host, "definition" | "definitions">,
  ) {
    this.#record = record;
    this.#artifacts = new Map(artifacts.map((artifact) => [artifact.artifactId, artifact]));
    this.definition = definition;
    this.definitions = definitions;
    this.clock = clockOf(() => this.#at);
  }

  /** Sets the time and the owner of the next entry, which repeated code sees. */
  prepare({ at, epoch }: Entry): void {
    this.#at = at;
    if (epoch === this.epoch) return;
    this.epoch = epoch;
    this.#notes = new EffectNotes();
  }

  /** Takes a recorded entry with the messages that it adds. */
  take(entry: Entry, messages: readonly Message[]): void {
    if (entry.type === "conversation.cleared") this.#conversation.clear();
    const added = new Set(messagesAddedBy(entry));
    this.#conversation.addMessages(messages.filter(({ id }) => added.has(id)));
    this.#conversation.note(entry);
    this.#fold.apply(entry);
    this.#seq = entry.seq;
    if (entry.type === "turn.started") this.#instructions = undefined;
    if (entry.type !== "model.responded" || entry.usage.estimated === true) return;
    this.notes.promptsOf(this.definition.model).noteAnswered(entry.messageId, entry.usage.inputTokens);
  }

  /** Adds the messages that no entry names. */
  addMessages(messages: readonly Message[]): void {
    this.#conversation.addMessages(messages);
  }

  /** Removes and returns what was appended since the last call. */
  takeAppended(): Appended[] {
    return this.#appended.splice(0);
  }

  /** Makes the text of an instructions function part of the turn. */
  keepInstructions(entry: EntryOf<"instructions.resolved">): void {
    this.#instructions = entry;
  }

  get identity(): AgentRecord {
    return this.#record;
  }

  get notes(): EffectNotes {
    return this.#notes;
  }

  random(): number {
    return 0.5;
  }

  append(body: FactBody, parts?: FactParts): Entry {
    const entry = { ...body, seq: this.#seq + 1, at: this.#at, epoch: this.epoch } as Entry;
    this.#appended.push({ entry, messages: parts?.messages ?? [] });
    return entry;
  }

  async propose<Body extends IntentBody>(body: Body): Promise<Proposed<Body["type"]>> {
    await Promise.resolve();
    const asked = body as IntentBody;
    if (asked.type === "generate.requested") this.#throwRecordedFailure(asked);
    throw new UnrecordedAction(asked);
  }

  /** A recorded answer is returned before anything is proposed; this finds a recorded failure of the same call. */
  #throwRecordedFailure({ turnId, run, index, promptHash }: Extract<IntentBody, { type: "generate.requested" }>): void {
    const { entries } = this.#conversation.memory(turnId);
    const isSame = (entry: Entry): boolean =>
      entry.type === "generate.requested" &&
      entry.run === run &&
      entry.index === index &&
      entry.promptHash === promptHash;
    if (!entries.some(isSame)) return;
    const failed = entries.findLast(
      (entry): entry is EntryOf<"generate.failed"> =>
        entry.type === "generate.failed" && entry.run === run && entry.index === index,
    );
    if (failed && !failed.next) throw Object.assign(new Error(failed.error.message), { code: failed.error.code });
  }

  proposeSpawn(): Promise<Proposed<"child.spawned">> {
    return Promise.reject(new UnsupportedError("a replay spawns no agent"));
  }

  committed(): Promise<void> {
    return Promise.resolve();
  }

  delivered(): Promise<void> {
    return Promise.resolve();
  }

  undelivered(): readonly Entry[] {
    return this.#appended.map(({ entry }) => entry);
  }

  turn(turnId: string): TurnState | undefined {
    const turn = this.#fold.turn;
    if (turn?.turnId !== turnId) return undefined;
    return this.#instructions?.turnId === turnId ? { ...turn, hasInstructions: true } : turn;
  }

  get stubUses(): Readonly<Record<string, number>> {
    return this.#fold.agent.context.stubUses ?? {};
  }

  call(_turnId: string, callId: string): CallState | undefined {
    return this.#fold.call(callId);
  }

  memory(turnId: string): TurnMemory {
    const memory = this.#conversation.memory(turnId);
    const resolved = this.#instructions;
    if (resolved?.turnId !== turnId) return memory;
    const others = memory.entries.filter(({ type }) => type !== "instructions.resolved");
    const [first, ...rest] = others;
    const { prompt } = memory;
    return { turnId, prompt, entries: first ? [first, resolved, ...rest] : [resolved] };
  }

  traceOf(): undefined {
    return undefined;
  }

  history(): readonly Message[] {
    return this.#conversation.viewOf(this.#fold.agent.context.compaction);
  }

  turnStart(): number | undefined {
    return this.#conversation.turnStartOf(this.#fold.agent.context.compaction);
  }

  archive(): readonly Message[] {
    return this.#conversation.archive;
  }

  lentLists(): Pick<CompileInput, "history" | "earlier"> {
    return this.#conversation.lentLists(this.#fold.agent.context.compaction);
  }

  message(messageId: string): Message | undefined {
    return this.#conversation.message(messageId);
  }

  hasExcerpts(): boolean {
    return this.#conversation.hasExcerpts;
  }

  artifact(artifactId: string): Promise<Artifact | undefined> {
    return Promise.resolve(this.#artifacts.get(artifactId));
  }

  artifactByName(): Promise<undefined> {
    return Promise.reject(new UnsupportedError("a replay runs no tool"));
  }

  artifacts(): Promise<readonly []> {
    return Promise.reject(new UnsupportedError("a replay runs no tool"));
  }

  schedulesOf(): never {
    throw new UnsupportedError("a replay runs no tool");
  }

  inContextOf<T>(_turnId: string, work: () => T): T {
    return work();
  }

  auth(): undefined {
    return undefined;
  }

  redactorOf(): (text: string) => string {
    return (text) => text;
  }

  noteFailure(): void {
    // The recorded failure decides.
  }

  resolveAuth(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  slots(): never {
    throw new UnsupportedError("a replay runs no tool");
  }

  readonly viewers: Host["viewers"] = {
    isStreaming: () => false,
    showAnswer: () => ({ add: nothing, complete: nothing, end: nothing }),
    showProgress: nothing,
  };

  readonly inFlight: Host["inFlight"] = { run: (_key, signal, start) => start(signal), has: () => false };

  readonly background: Host["background"] = {
    running: () => [],
    list: () => Promise.resolve([]),
    endOf: () => Promise.resolve(undefined),
    cancel: () => Promise.resolve(false),
  };

  readonly queue: Host["queue"] = {
    add: () => Promise.reject(new UnsupportedError("a replay runs no tool")),
    withdraw: () => Promise.reject(new UnsupportedError("a replay runs no tool")),
  };

  recordedCall(): Promise<undefined> {
    return Promise.reject(new UnsupportedError("a replay runs no tool"));
  }

  live(): Promise<Host> {
    return Promise.resolve(this);
  }

  quiet(): Promise<void> {
    return Promise.resolve();
  }

  freed(): Promise<void> {
    return Promise.reject(new UnsupportedError("a replay waits for no budget"));
  }

  moved(): Promise<void> {
    return Promise.resolve();
  }

  effectOver(): void {
    // No effect of a replay goes on.
  }

  confirmPause(): void {
    // The recorded entry confirms it.
  }

  accounts(): Promise<readonly []> {
    return Promise.resolve([]);
  }

  child(): Promise<never> {
    return Promise.reject(new UnsupportedError("a replay runs no agent"));
  }
}

const nothing = (): void => undefined;

/** The recorded time. Time-outs never fire and waits end at once, because their outcomes are in the journal. */
function clockOf(now: () => number): Clock {
  return {
    now,
    elapsed: now,
    setTimer: () => nothing,
    setDelay: () => nothing,
    async sleep(_ms, signal) {
      await Promise.resolve();
      signal?.throwIfAborted();
    },
  };
}
