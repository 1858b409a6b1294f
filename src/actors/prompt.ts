import { deepFreeze } from "../base/index.ts";
import type { ReservationAsk } from "../budget/index.ts";
import { type CompileInput, isOwnCompiler, LAST_CALL_NOTE, patchesIn, promptMessages } from "../context/index.ts";
import type { LanguageModel } from "../model/index.ts";
import {
  type AssistantMessage,
  type CallSettings,
  type EntryOf,
  type HookPatch,
  type LastCall,
  type ModelRequest,
  type ModelResponse,
  type ModelTool,
  settingsOfCall,
  signalOfLimit,
  type StopSignal,
  type TurnState,
  type Usage,
} from "../state/index.ts";
import type { HookEdit } from "./cache-watch.ts";
import type { Host } from "./host.ts";
import { grantedTool, toolsOf } from "./tool-calls.ts";
import { thrownBy } from "./user-errors.ts";

/**
 * The request of the next model call, from history, instructions and the changes that hooks made for this call.
 * @param model The model that is called: it gets back only its own reasoning.
 */
export function assembleRequest(host: Host, turn: TurnState, model: LanguageModel): ModelRequest {
  const { definition, identity } = host;
  let messages: ModelRequest["messages"];
  try {
    messages = promptMessages({
      agentId: identity.agentId,
      number: turn.number,
      model,
      instructions: instructionsOf(host, turn.turnId),
      compiler: definition.history,
      input: compileInputOf(host, turn),
      patches: patchesOf(host, turn),
    });
  } catch (error) {
    throw thrownBy(`the history compiler "${definition.history.name}"`, error);
  }
  const tools = toolsOfNext(host, turn);
  return {
    messages,
    ...(tools.length > 0 ? { tools } : {}),
    ...settingsOfNext(host, turn, tools),
    ...(definition.responseFormat === undefined ? {} : { responseFormat: definition.responseFormat }),
  };
}

/** The settings of the next model call. */
export function settingsOfNext(host: Host, turn: TurnState, tools: readonly ModelTool[]): CallSettings {
  const [started] = host.memory(turn.turnId).entries;
  return settingsOfCall({
    definition: host.definition,
    turn: started?.type === "turn.started" ? started.settings : undefined,
    hooks: patchesOf(host, turn).map(({ settings }) => settings),
    step: nextStep(turn),
    tools: tools.map(({ name }) => name),
  });
}

/** The tools of the next model call. */
export function toolsOfNext(host: Host, { turnId }: TurnState): readonly ModelTool[] {
  // The tool stays from the first excerpt on: changing the tools would invalidate the provider's cache of the whole prompt.
  const all = toolsOf(host, turnId).definitions({ onDemand: host.hasExcerpts() });
  const { grantedTools, deniedTools } = host.identity;
  const isNarrowed = grantedTools !== null || deniedTools !== undefined;
  return isNarrowed ? all.filter(({ name }) => grantedTool(host, turnId, name) !== undefined) : all;
}

/** The step of the next call: a retry belongs to the same step. */
export function nextStep({ attempt, step }: Pick<TurnState, "attempt" | "step">): number {
  return attempt > 0 ? step : step + 1;
}

/** The input of the history compiler. */
export function compileInputOf(host: Host, { turnId, contextWindowSize, loadedCallIds }: TurnState): CompileInput {
  const isOwn = isOwnCompiler(host.definition.history);
  const { history, earlier } = isOwn ? host.lentLists() : { history: host.history(), earlier: host.archive() };
  return {
    history,
    turnId,
    turnStart: host.turnStart(),
    contextWindowSize,
    loadedCallIds: deepFreeze(loadedCallIds),
    earlier,
  };
}

function instructionsOf(host: Host, turnId: string): string {
  const { instructions } = host.definition;
  const resolved = host.memory(turnId).entries.findLast(isResolved);
  if (typeof instructions === "string") return resolved?.edited ? resolved.text : instructions;
  return resolved?.text ?? "";
}

function isResolved(entry: { type: string }): entry is EntryOf<"instructions.resolved"> {
  return entry.type === "instructions.resolved";
}

/** The changes by `beforeLlm` hooks for the next call. */
export function patchesOf(host: Host, turn: TurnState): HookPatch[] {
  return turn.appliedHooks.length === 0 ? [] : patchesIn(host.memory(turn.turnId).entries);
}

/** The same, with the plugins of the hooks. */
export function editsOf(host: Host, turn: TurnState): readonly HookEdit[] {
  if (turn.appliedHooks.length === 0) return [];
  const edits: HookEdit[] = [];
  for (const entry of host.memory(turn.turnId).entries) {
    if (entry.type === "model.responded") edits.length = 0;
    if (entry.type === "hook.applied" && entry.hook === "beforeLlm") edits.push(entry);
  }
  return edits;
}

/** The author of an answer, as its message names it. */
export function writerOf(
  { provider, name }: LanguageModel,
  { adapter, reasoning, prefixHash }: Pick<ModelResponse, "adapter" | "reasoning" | "prefixHash">,
): NonNullable<AssistantMessage["reasoningBy"]> {
  const isBound = reasoning !== undefined && prefixHash !== undefined;
  return { provider, model: name, ...(adapter ? { adapter } : {}), ...(isBound ? { prefixHash } : {}) };
}

/** Tokens of the note and its message frame: an estimate on the high side, and an upper bound for any tokenizer. */
const NOTE_TOKENS = 48;
const NOTE_BOUND = Buffer.byteLength(LAST_CALL_NOTE) + 16;

/** Whether the turn's budget requests a final answer. */
export function finalAnswerOf({ limits }: TurnState): Pick<ReservationAsk, "finalAnswer"> {
  return limits.finalAnswer === true ? { finalAnswer: true } : {};
}

/** The reservation with room for the note: only when a call is granted is it known whether it is the last one. */
export function withNote(ask: ReservationAsk): ReservationAsk {
  if (ask.finalAnswer !== true) return ask;
  return { ...ask, promptTokens: ask.promptTokens + NOTE_TOKENS, promptBound: ask.promptBound + NOTE_BOUND };
}

/** The stop of a turn whose last permitted answer calls tools anyway: it names the limit that allows no further call. */
export function lastCallSignal(last: LastCall, usage: Usage, costMicros: number | null): StopSignal {
  const { limit, accountId, max, holder } = last;
  const tokens = limit === "maxTokens" ? usage.inputTokens + usage.outputTokens : 0;
  const cost = limit === "maxCostMicros" ? (costMicros ?? 0) : 0;
  return signalOfLimit(limit, accountId, { used: last.used + tokens + cost, max, holder });
}
