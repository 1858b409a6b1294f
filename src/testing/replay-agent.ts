import {
  answerWithResult,
  assembleRequest,
  checkOutput,
  endsTurn,
  gateCall,
  holdsAnswers,
  modelOfRequest,
  repeatCompaction,
  repeatHook,
  resolveInstructions,
} from "../actors/index.ts";
import type { AgentDefinition } from "../agents/index.ts";
import { redactedText, shortHash, stableStringify, systemClock, wordsOfThrown } from "../base/index.ts";
import { promptHashOf, SentPrompts } from "../context/index.ts";
import { hookCountsOf } from "../hooks/index.ts";
import { type Entry, type EntryOf, type Message, messagesAddedBy, numberOfTurn, textOf } from "../state/index.ts";
import type { StoredRow } from "../stores/index.ts";
import { type AskedRequest, type Difference, differenceOf, requestDifferences, sentForm } from "./compare-requests.ts";
import { conversationOf, type RecordedAgent, type Recording } from "./recording.ts";
import { ReplayHost, UnrecordedAction } from "./replay-host.ts";

/** The part of a run that differs. */
export type DivergedPart =
  | "agent"
  | "model"
  | "system prompt"
  | "messages"
  | "tools"
  | "settings"
  | "response format"
  | "hooks"
  | "tool call"
  | "output"
  | "compaction"
  | "generate";

/** Something that a replay could not compare. */
export type NotCompared =
  /** The conversation was cleared later, which removed the messages of earlier prompts. */
  | "cleared conversation"
  /** The recorded definition is not stored: only hashes and settings were compared. */
  | "definition not stored"
  /** The prompt depends on redacted texts and on a history compiler in user code. */
  | "redacted prompt"
  /** Redacted arguments or answers are not checked against schemas, and redacted prompts of `generate()` not against their hash. */
  | "redacted value"
  /** Code of tools does not run, so that its calls of `generate()` are not made. */
  | "generate() of tools"
  /** Hooks and functions of `needsApproval` did not run. */
  | "hooks"
  /** The run is a fork, whose past was changed, so that these prompts are not those that were sent. */
  | "changed past";

/** How one agent is replayed. */
export interface ReplayRules {
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly runsHooks: boolean;
  /** The longest time that a repeated hook, compiler or schema may take, in milliseconds. */
  readonly timeoutMs: number;
}

/** Numbers of compared and of other parts. */
export interface ReplayTally {
  requests: number;
  hooks: number;
  calls: number;
  readonly notCompared: Map<NotCompared, number>;
}

type Found = Difference<DivergedPart>;

/**
 * One recorded agent, stepped through its journal: before each entry that user code or a definition determines, the code of today repeats it on
 * the recorded state, and the result is compared with the entry.
 */
export class AgentReplay {
  readonly #host: ReplayHost;
  readonly #isRedacted: boolean;
  readonly #prompts: SentPrompts;
  readonly #rules: ReplayRules;
  readonly #tally: ReplayTally;
  readonly #recording: Recording;
  readonly #clearedAt: number;
  readonly #definition: AgentDefinition;

  constructor(
    recording: Recording,
    agent: RecordedAgent,
    { definition, rules, tally }: { definition: AgentDefinition; rules: ReplayRules; tally: ReplayTally },
  ) {
    const { definitions } = rules;
    this.#recording = recording;
    this.#rules = rules;
    this.#tally = tally;
    this.#definition = definition;
    this.#isRedacted = recording.redacted > 0;
    this.#host = new ReplayHost(agent.record, agent.stored.artifacts, { definition, definitions });
    this.#prompts = new SentPrompts(conversationOf(recording, agent));
    this.#clearedAt = agent.entries.findLast(({ type }) => type === "conversation.cleared")?.seq ?? 0;
  }

  /** Replays the entries of one row; the first difference ends it. */
  async row({ entries, messages }: StoredRow): Promise<{ entry: Entry; found: Found } | undefined> {
    const named = new Set(entries.flatMap((entry) => messagesAddedBy(entry)));
    this.#host.addMessages(messages.filter(({ id }) => !named.has(id)));
    for (const entry of entries) {
      this.#host.prepare(entry);
      const found = await this.#check(entry, messages);
      if (found) return { entry, found };
      this.#host.take(entry, messages);
    }
    return undefined;
  }

  async #check(entry: Entry, messages: readonly Message[]): Promise<Found | undefined> {
    if (entry.seq < this.#clearedAt) {
      if (entry.type === "model.requested") this.#skip("cleared conversation");
      return undefined;
    }
    switch (entry.type) {
      case "turn.started":
        return this.#hookCounts(entry);
      case "instructions.resolved":
        return await this.#instructions(entry);
      case "model.requested":
        return await this.#request(entry);
      case "hook.applied":
        return await this.#hook(entry, messages);
      case "call.gated":
        return await this.#gate(entry);
      case "tool.started":
        return entry.attempt === 1 && entry.arguments !== undefined ? await this.#gate(entry) : undefined;
      case "tool.settled":
        return this.#ending(entry);
      case "output.checked":
        return await this.#output(entry);
      case "context.compacted":
        return await this.#compaction(entry, messages);
      case "generate.requested":
        if (this.#host.call(entry.turnId, entry.run)) this.#skip("generate() of tools");
        return undefined;
      default:
        return undefined;
    }
  }

  #hookCounts(entry: EntryOf<"turn.started">): Found | undefined {
    if (!this.#rules.runsHooks) return undefined;
    return differenceOf("hooks", entry.hooks, hookCountsOf(this.#definition.hooks))[0];
  }

  /** The text of the definition of today; compared with the recorded one, if the recorded definition had a function too. */
  async #instructions(entry: EntryOf<"instructions.resolved">): Promise<Found | undefined> {
    if (entry.edited === true) return undefined;
    const resolved = await this.#resolvedInstructions(entry.turnId);
    if (resolved === undefined) return undefined;
    if ("found" in resolved) return resolved.found;
    return differenceOf("system prompt", entry.text, resolved.entry.text)[0];
  }

  async #resolvedInstructions(
    turnId: string,
  ): Promise<{ entry: EntryOf<"instructions.resolved"> } | { found: Found } | undefined> {
    const outcome = await this.#repeated((signal) => resolveInstructions(this.#host, turnId, signal));
    if ("error" in outcome) return { found: failure("system prompt", "a text", outcome.error) };
    const entry = outcome.entries.find((one) => one.entry.type === "instructions.resolved")?.entry;
    return entry?.type === "instructions.resolved" ? { entry } : undefined;
  }

  async #request(entry: EntryOf<"model.requested">): Promise<Found | undefined> {
    const turn = this.#host.turn(entry.turnId);
    if (!turn || !entry.reservation) return undefined;
    const resolved = await this.#resolvedInstructions(entry.turnId);
    if (resolved && "found" in resolved) return resolved.found;
    if (resolved) this.#host.keepInstructions(resolved.entry);
    const { model } = modelOfRequest(this.#host, entry);
    const now = this.#host.turn(entry.turnId) ?? turn;
    let got: AskedRequest;
    try {
      got = { model: plainModel(model), request: assembleRequest(this.#host, now, model) };
    } catch (error) {
      return failure("messages", "a prompt", error);
    }
    const asked = this.#prompts.asked(entry.seq);
    if (!asked) return undefined;
    this.#tally.requests += 1;
    const expected: AskedRequest = { model: this.#recordedModel(entry), request: asked.request };
    const isSameHash = promptHashOf(got.request.messages) === entry.promptHash;
    const { check } = asked;
    if (check.isExact || (check.why === "other_hash" && this.#isRedacted)) {
      return requestDifferences(expected, got)[0];
    }
    if (check.why === "no_definition") {
      this.#skip("definition not stored");
      const known = { model: expected.model, request: { ...got.request, ...entry.settings } };
      const settings = requestDifferences(known, got)[0];
      if (settings || isSameHash) return settings;
      return differenceOf("messages", asked.request.messages.map(sentForm), got.request.messages.map(sentForm))[0];
    }
    if (!isSameHash && this.#isRedacted) {
      this.#skip("redacted prompt");
      return undefined;
    }
    if (isSameHash) {
      const same = { ...expected, request: { ...expected.request, messages: got.request.messages } };
      return requestDifferences(same, got)[0];
    }
    const found = requestDifferences(expected, got)[0];
    if (!found && this.#host.identity.forkedFrom) {
      this.#skip("changed past");
      return undefined;
    }
    return found ?? failure("messages", `a prompt with the hash ${entry.promptHash}`, "a prompt with another hash");
  }

  #recordedModel({ model: name, provider, turnId }: EntryOf<"model.requested">): AskedRequest["model"] {
    const [started] = this.#host.memory(turnId).entries;
    const known = started?.type === "turn.started" ? started.model : undefined;
    const last = this.#host
      .memory(turnId)
      .entries.findLast((entry) => (entry.type === "warning" || entry.type === "turn.started") && entry.definition);
    const hash = last && "definition" in last ? last.definition?.hash : undefined;
    const stored = hash === undefined ? undefined : this.#recording.definitions.get(hash)?.model;
    return { name, provider: provider ?? stored?.provider ?? known?.provider ?? "" };
  }

  async #hook(entry: EntryOf<"hook.applied">, recorded: readonly Message[]): Promise<Found | undefined> {
    if (!this.#rules.runsHooks) {
      this.#skip("hooks");
      return undefined;
    }
    const { turnId, step, hook, index, callId, inputId } = entry;
    if (hook === "beforeEachTool") return undefined;
    const ofCall = callId === undefined ? {} : { callId };
    const place = { turnId, step, hook, index, ...ofCall, ...(inputId === undefined ? {} : { inputId }) };
    const outcome = await this.#repeated((signal) => repeatHook(this.#host, place, signal));
    const expected = hookForm(entry, recorded);
    if ("error" in outcome) {
      if (this.#isRedacted && outcome.error instanceof UnrecordedAction) {
        this.#skip("redacted value");
        return undefined;
      }
      return failure(partOfError(outcome.error, "hooks"), expected, outcome.error);
    }
    this.#tally.hooks += 1;
    const last = outcome.entries.at(-1);
    const got = last?.entry.type === "hook.applied" ? hookForm(last.entry, last.messages) : last?.entry;
    return differenceOf("hooks", expected, got)[0];
  }

  async #gate(entry: EntryOf<"call.gated"> | EntryOf<"tool.started">): Promise<Found | undefined> {
    const call = this.#host.call(entry.turnId, entry.callId);
    // A second gate has the arguments that a person substituted.
    if (!call || call.gate !== null) return undefined;
    const tool = this.#definition.tools.get(call.name);
    const { beforeEachTool } = this.#definition.hooks;
    const hasCode = beforeEachTool.length > 0 || (tool?.kind === "function" && typeof tool.needsApproval !== "boolean");
    if (hasCode && !this.#rules.runsHooks) {
      this.#skip("hooks");
      return undefined;
    }
    const expected = gateForm(entry);
    if (JSON.stringify(expected.arguments ?? null).includes(redactedText)) {
      this.#skip("redacted value");
      return undefined;
    }
    let open: Awaited<ReturnType<typeof gateCall>>;
    const outcome = await this.#repeated(async (signal) => {
      open = await gateCall(this.#host, call, signal);
    });
    if ("error" in outcome) return failure("tool call", expected, outcome.error);
    this.#tally.calls += 1;
    const gated = outcome.entries.find((one) => one.entry.type === "call.gated")?.entry;
    const got =
      gated?.type === "call.gated"
        ? gateForm(gated)
        : { verdict: "allowed", effect: open?.gate?.effect, arguments: open?.gate?.arguments ?? null };
    return differenceOf("tool call", { tool: call.name, ...expected }, { tool: call.name, ...got })[0];
  }

  /** Whether the result may end the turn follows from the definition. */
  #ending(entry: EntryOf<"tool.settled">): Found | undefined {
    const call = this.#host.call(entry.turnId, entry.callId);
    if (!call || call.outcome !== null) return undefined;
    const recorded = entry.endsTurn ?? false;
    // A result of a call that a stop has cut off ends nothing.
    if (!recorded && (this.#host.turn(entry.turnId)?.execution.continuation.stopSignals.length ?? 0) > 0)
      return undefined;
    const expected = { tool: call.name, endsTurn: recorded };
    return differenceOf("tool call", expected, {
      tool: call.name,
      endsTurn: endsTurn(this.#host, call, entry.outcome),
    })[0];
  }

  async #output(entry: EntryOf<"output.checked">): Promise<Found | undefined> {
    const { turnId, messageId, callId } = entry;
    const text = textOf(this.#host.message(callId ?? messageId)?.content ?? "");
    if (text.includes(redactedText)) {
      this.#skip("redacted value");
      return undefined;
    }
    if (callId !== undefined && !this.#rules.runsHooks && holdsAnswers(this.#host)) {
      this.#skip("hooks");
      return undefined;
    }
    const check = callId === undefined ? checkOutput : answerWithResult;
    const outcome = await this.#repeated((signal) => check(this.#host, turnId, signal));
    const expected = outputForm(entry);
    if ("error" in outcome) return failure("output", expected, outcome.error);
    const checked = outcome.entries.find((one) => one.entry.type === "output.checked")?.entry;
    return differenceOf("output", expected, checked?.type === "output.checked" ? outputForm(checked) : undefined)[0];
  }

  async #compaction(entry: EntryOf<"context.compacted">, recorded: readonly Message[]): Promise<Found | undefined> {
    if (!this.#rules.runsHooks) {
      this.#skip("hooks");
      return undefined;
    }
    const outcome = await this.#repeated((signal) => repeatCompaction(this.#host, entry.turnId, signal));
    const expected = compactionForm(entry, recorded);
    if ("error" in outcome) {
      if (this.#isRedacted && outcome.error instanceof UnrecordedAction) {
        this.#skip("redacted value");
        return undefined;
      }
      return failure(partOfError(outcome.error, "compaction"), expected, outcome.error);
    }
    this.#tally.hooks += 1;
    const done = outcome.entries.find((one) => one.entry.type === "context.compacted");
    const got = done?.entry.type === "context.compacted" ? compactionForm(done.entry, done.messages) : undefined;
    return differenceOf("compaction", expected, got)[0];
  }

  /** Runs code of the definition, and returns what it appended or its error. */
  async #repeated(
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<{ entries: ReturnType<ReplayHost["takeAppended"]> } | { error: unknown }> {
    const { timeoutMs } = this.#rules;
    const late = new AbortController();
    const over = Promise.withResolvers<never>();
    const cancel = systemClock.setDelay(timeoutMs, () => {
      const error = new Error(`the code did not end within ${timeoutMs} ms`);
      late.abort(error);
      over.reject(error);
    });
    try {
      await Promise.race([work(late.signal), over.promise]);
      return { entries: this.#host.takeAppended() };
    } catch (error) {
      this.#host.takeAppended();
      return { error };
    } finally {
      cancel();
    }
  }

  #skip(what: NotCompared): void {
    this.#tally.notCompared.set(what, (this.#tally.notCompared.get(what) ?? 0) + 1);
  }
}

/** Where an entry belongs. */
export function placeOf(entry: Entry): { turn: number; step: number } {
  const turn = "turnId" in entry && entry.turnId !== undefined ? numberOfTurn(entry.turnId) : 0;
  return { turn, step: "step" in entry ? entry.step : 0 };
}

function plainModel({ provider, name }: { provider: string; name: string }): AskedRequest["model"] {
  return { provider, name };
}

function failure(part: DivergedPart, expected: unknown, thrown: unknown): Found {
  const error = typeof thrown === "string" ? thrown : `error: ${wordsOfThrown(thrown)}`;
  const got = thrown instanceof UnrecordedAction ? { error, asked: askedForm(thrown) } : { error };
  return differenceOf(part, { recorded: expected }, got)[0] ?? { part, expected, got, diff: "" };
}

function askedForm({ intent }: UnrecordedAction): unknown {
  if (intent.type !== "generate.requested") return intent.type;
  const { run, index, promptHash } = intent;
  return { run, index, promptHash };
}

function partOfError(error: unknown, part: DivergedPart): DivergedPart {
  return error instanceof UnrecordedAction && error.intent.type === "generate.requested" ? "generate" : part;
}

function hookForm({ hook, plugin, index, patch }: EntryOf<"hook.applied">, messages: readonly Message[]) {
  const added = messages.filter(({ id }) => patch.addedMessageIds.includes(id));
  return { hook, plugin, index, patch, added: added.map(sentForm) };
}

function gateForm(entry: EntryOf<"call.gated"> | EntryOf<"tool.started">) {
  if (entry.type === "tool.started") {
    return { verdict: "allowed", effect: entry.effect, arguments: entry.arguments ?? null };
  }
  const { verdict, effect, arguments: args, needsApproval, message } = entry;
  return {
    verdict,
    effect,
    arguments: args,
    ...(needsApproval === true ? { needsApproval } : {}),
    ...(message === null ? {} : { message }),
  };
}

function outputForm({ valid, value, issues }: EntryOf<"output.checked">) {
  return { valid, ...(value === undefined ? {} : { value }), ...(issues === undefined ? {} : { issues }) };
}

function compactionForm(entry: EntryOf<"context.compacted">, messages: readonly Message[]) {
  const { strategy, through, kept, summaryMessageId } = entry;
  const summary = messages.find(({ id }) => id === summaryMessageId);
  return { strategy, through, kept, summary: summary ? sentForm(summary) : null };
}

/** A hash of a whole request as it is sent: messages, tools, settings and response format. Ids and times of messages are left out. */
export function requestHashOf({ messages, ...others }: AskedRequest["request"]): string {
  return shortHash(stableStringify({ ...others, messages: messages.map(sentForm) }));
}
