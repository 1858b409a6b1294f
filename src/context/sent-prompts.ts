import {
  type AgentIdentity,
  type DefinitionRef,
  type Entry,
  type EntryOf,
  type HookPatch,
  isExcerpt,
  type Message,
  messagesAddedBy,
  type ModelRequest,
  type ModelTool,
  numberOfTurn,
  settingsOfCall,
  type StoredDefinition,
} from "../state/index.ts";
import { type CompactedView, viewOf } from "./compaction.ts";
import { fullHistory, historyNamed } from "./histories.ts";
import { asLastCall, patchesIn, promptHashOf, promptMessages, type Writer } from "./prompt.ts";

/** The stored data of one agent from which its prompts are rebuilt. */
export interface StoredConversation {
  readonly agent: Pick<AgentIdentity, "agentId" | "grantedTools" | "deniedTools">;
  /** All entries, in the order of their numbers. */
  readonly entries: readonly Entry[];
  /** All messages, as returned by `Stores.messages`. */
  readonly messages: readonly Message[];
  /** By hash: the stored definitions among `definitionHashesOf(entries)`. */
  readonly definitions: ReadonlyMap<string, StoredDefinition>;
}

/** Why a prompt cannot be shown exactly as it was sent. */
export type PromptGap =
  /** The definition under which the turn worked is not stored. */
  | "no_definition"
  /** A history compiler in user code selected the messages. */
  | "custom_compiler"
  /** The conversation was cleared after the call. */
  | "cleared_messages"
  /** The hash differs from the journal's for an unknown reason. */
  | "other_hash";

/** Whether the hash of the rebuilt prompt equals the journal's hash of the sent prompt. */
export type PromptCheck =
  | { readonly isExact: true }
  | { readonly isExact: false; readonly why: PromptGap; readonly message: string };

/** One attempt of a model call, without contents. */
export interface SentCall {
  /** Number of the call's `model.requested` entry. */
  readonly seq: number;
  readonly at: number;
  readonly turnId: string;
  readonly step: number;
  readonly attempt: number;
  readonly model: string;
  readonly promptHash: string;
  /** Id of the answer's message. */
  readonly messageId: string;
  readonly definition: DefinitionRef;
  /** Whether the budget allowed no call after this one. It then cannot call tools, and its prompt ends with a note. */
  readonly isLastCall: boolean;
}

/** A prompt as it was sent: messages, tools and parameters. */
export interface SentPrompt extends SentCall {
  /** The rebuilt prompt; an approximation if `check.isExact` is false. */
  readonly request: ModelRequest;
  readonly check: PromptCheck;
}

/** The hashes of the definitions under which an agent's turns have worked. */
export function definitionHashesOf(entries: readonly Entry[]): readonly string[] {
  return [...new Set(entries.flatMap((entry) => definitionIn(entry)?.hash ?? []))];
}

/** The definition that applies from this entry on, if the entry changes it. */
export function definitionIn(entry: Entry): DefinitionRef | undefined {
  return entry.type === "turn.started" || entry.type === "warning" ? entry.definition : undefined;
}

/** The state of the journal at one call, to build its prompt from. */
interface Moment {
  readonly call: SentCall;
  readonly requested: EntryOf<"model.requested">;
  readonly started: EntryOf<"turn.started">;
  /** Range of the turn's entries in the list of all entries. */
  readonly from: number;
  readonly to: number;
  readonly compaction: CompactedView | null;
  readonly contextWindowSize: number | null;
  readonly loadedCallIds: readonly string[];
}

/**
 * The prompts of one agent. The constructor reads each entry once; rebuilding a prompt costs as much as building it did
 * for the call. Calls of `generate()` are not included: user code supplies their messages, and only a hash is stored.
 */
export class SentPrompts {
  readonly #stored: StoredConversation;
  readonly #moments: ReadonlyMap<number, Moment>;
  readonly #arrivals: readonly number[];
  /** Number of the last `conversation.cleared` entry; 0 if there is none. */
  readonly #clearedAt: number;

  constructor(stored: StoredConversation) {
    this.#stored = stored;
    this.#moments = momentsOf(stored.entries);
    this.#arrivals = arrivalsOf(stored);
    this.#clearedAt = stored.entries.findLast(({ type }) => type === "conversation.cleared")?.seq ?? 0;
  }

  /** All granted calls, in order. */
  get calls(): readonly SentCall[] {
    return [...this.#moments.values()].map(({ call }) => call);
  }

  /** The prompt of the call whose `model.requested` has this number. */
  prompt(seq: number): SentPrompt | undefined {
    const moment = this.#moments.get(seq);
    if (!moment) return undefined;
    const { request: asked, check } = this.#rebuilt(moment);
    return { ...moment.call, request: sentRequest(moment, asked), check };
  }

  /** The same request as the agent asked it: before the reservation bounded its output, and without the note of a last call. */
  asked(seq: number): Pick<SentPrompt, "request" | "check"> | undefined {
    const moment = this.#moments.get(seq);
    return moment && this.#rebuilt(moment);
  }

  #rebuilt(moment: Moment): Pick<SentPrompt, "request" | "check"> {
    const { seq } = moment.call;
    const definition = this.#stored.definitions.get(moment.call.definition.hash);
    const compiler = definition && historyNamed(definition.history);
    const archive = this.#stored.messages.slice(0, countBelow(this.#arrivals, seq));
    const turnEntries = this.#stored.entries.slice(moment.from, moment.to);
    const patches = patchesIn(turnEntries);
    const { turnId } = moment.call;
    const messages = promptMessages({
      agentId: this.#stored.agent.agentId,
      number: numberOfTurn(turnId),
      model: calledModelOf(moment, definition),
      instructions: instructionsOf(definition, turnEntries),
      compiler: compiler ?? fullHistory(),
      patches,
      input: {
        history: viewOf(archive, moment.compaction),
        turnId,
        contextWindowSize: moment.contextWindowSize,
        loadedCallIds: moment.loadedCallIds,
        earlier: archive,
      },
    });
    const request = this.#requestOf(moment, definition, { messages, patches, hasExcerpts: archive.some(isExcerpt) });
    const isSame = promptHashOf(messages) === moment.call.promptHash;
    const check = this.#checkOf(moment, { definition, isKnown: compiler !== undefined, isSame });
    return { request, check };
  }

  #requestOf(
    { call, started }: Moment,
    definition: StoredDefinition | undefined,
    {
      messages,
      patches,
      hasExcerpts,
    }: {
      readonly messages: readonly Message[];
      readonly patches: readonly HookPatch[];
      readonly hasExcerpts: boolean;
    },
  ): ModelRequest {
    const tools = definition ? toolsOf(definition, started, this.#stored.agent, hasExcerpts) : [];
    const { responseFormat } = definition ?? {};
    const settings = settingsOfCall({
      definition,
      turn: started.settings,
      hooks: patches.map((patch) => patch.settings),
      step: call.step,
      tools: tools.map(({ name }) => name),
    });
    return {
      messages,
      ...(tools.length > 0 ? { tools } : {}),
      ...settings,
      ...(responseFormat === undefined ? {} : { responseFormat }),
    };
  }

  #checkOf(
    { call }: Moment,
    known: { readonly definition: StoredDefinition | undefined; readonly isKnown: boolean; readonly isSame: boolean },
  ): PromptCheck {
    const { definition, isKnown, isSame } = known;
    if (call.seq < this.#clearedAt) {
      return gap(
        "cleared_messages",
        "the conversation was cleared after this call, which removed the messages of its prompt",
      );
    }
    if (!definition) {
      const { name, hash } = call.definition;
      return gap(
        "no_definition",
        `the definition "${name}" (${hash}) is not stored: its tools, its parameters and a fixed system prompt are missing`,
      );
    }
    if (isSame) return { isExact: true };
    return isKnown
      ? gap("other_hash", "the prompt rebuilt from the stored messages does not have the hash in the journal")
      : gap("custom_compiler", `the history compiler "${definition.history}" is code; the whole conversation is shown`);
  }
}

/** The request that the provider got. */
function sentRequest({ call, requested }: Moment, asked: ModelRequest): ModelRequest {
  const { maxOutputTokens, ...others } = asked;
  const { reservation } = requested;
  const isBounded = maxOutputTokens !== undefined || reservation?.isBound === true;
  const request = { ...others, ...(isBounded && reservation ? { maxOutputTokens: reservation.outputTokens } : {}) };
  return call.isLastCall ? asLastCall(request) : request;
}

function gap(why: PromptGap, message: string): PromptCheck {
  return { isExact: false, why, message };
}

function momentsOf(entries: readonly Entry[]): Map<number, Moment> {
  const moments = new Map<number, Moment>();
  let compaction: CompactedView | null = null;
  let definition: DefinitionRef | undefined;
  let turn: (Pick<Moment, "started" | "from"> & { size: number | null; loaded: readonly string[] }) | undefined;
  for (const [place, entry] of entries.entries()) {
    definition = definitionIn(entry) ?? definition;
    switch (entry.type) {
      case "turn.started":
        turn = { started: entry, from: place, size: entry.contextWindowSize ?? null, loaded: [] };
        break;
      case "context.compacted": {
        const { through, summaryMessageId, kept } = entry;
        compaction = { through, summaryMessageId, kept };
        break;
      }
      case "conversation.cleared":
        compaction = null;
        break;
      case "context.expanded":
        if (turn) turn.size = entry.size;
        break;
      case "context.loaded":
        if (turn) turn.loaded = [...new Set([...turn.loaded, ...entry.callIds])];
        break;
      case "model.requested":
        if (!turn || !definition || !entry.reservation) break;
        moments.set(entry.seq, {
          call: callOf(entry, definition),
          requested: entry,
          started: turn.started,
          from: turn.from,
          to: place,
          compaction,
          contextWindowSize: turn.size,
          loadedCallIds: turn.loaded,
        });
        break;
      default:
    }
  }
  return moments;
}

function callOf(entry: EntryOf<"model.requested">, definition: DefinitionRef): SentCall {
  const { seq, at, turnId, step, attempt, model, promptHash, messageId, last } = entry;
  return { seq, at, turnId, step, attempt, model, promptHash, messageId, definition, isLastCall: last !== undefined };
}

/** For each message, the number of the entry that added it. The stores return messages in that order. */
function arrivalsOf({ entries, messages }: StoredConversation): number[] {
  const brought = new Map<string, number>();
  for (const entry of entries) {
    for (const id of messagesAddedBy(entry)) if (!brought.has(id)) brought.set(id, entry.seq);
  }
  let last = 0;
  // A message that no entry added counts with the previous one; a loop's agent starts with such a conversation.
  return messages.map(({ id }) => (last = Math.max(last, brought.get(id) ?? 0)));
}

/** How many numbers of an ascending list are below a limit. */
function countBelow(growing: readonly number[], limit: number): number {
  let low = 0;
  let high = growing.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((growing[middle] ?? 0) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

function instructionsOf(definition: StoredDefinition | undefined, turnEntries: readonly Entry[]): string {
  const resolved = turnEntries.findLast((entry) => entry.type === "instructions.resolved");
  if (typeof definition?.instructions === "string" && resolved?.edited !== true) return definition.instructions;
  return resolved?.text ?? "";
}

/** The tools as sent to the model: the granted tools of the definition and the tools of the turn's caller. */
function toolsOf(
  definition: StoredDefinition,
  started: EntryOf<"turn.started">,
  { grantedTools, deniedTools = [] }: StoredConversation["agent"],
  hasExcerpts: boolean,
): readonly ModelTool[] {
  const own = definition.tools.filter(
    ({ name, deferred }) => deferred !== true && (grantedTools?.includes(name) ?? true),
  );
  const onDemand = hasExcerpts ? definition.onDemandTools.filter(({ name }) => !deniedTools.includes(name)) : [];
  const taken = new Set([...definition.tools, ...definition.onDemandTools].map(({ name }) => name));
  const clients = ((definition.clientTools && started.clientTools) || []).filter(
    ({ name }) => !taken.has(name) && (grantedTools?.includes(name) ?? true),
  );
  const shown = [...own, ...onDemand].map(({ name, description, jsonSchema }) => {
    return { name, description, parameters: jsonSchema };
  });
  return [...shown, ...clients];
}

/** The model that got the prompt: the definition's, or the one that was chosen for the call. */
function calledModelOf({ requested, started }: Moment, definition: StoredDefinition | undefined): Writer {
  const { model: name, provider } = requested;
  return provider === undefined ? (definition?.model ?? started.model) : { name, provider };
}
