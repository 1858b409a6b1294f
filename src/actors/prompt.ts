import { deepFreeze, shortHash } from "../base/index.ts";
import { assembleMessages, type CompileInput, isOfTurn, openTurnStart } from "../context/index.ts";
import {
  type EntryOf,
  type HookPatch,
  type Message,
  type ModelRequest,
  type TurnState,
  turnIdOf,
} from "../state/index.ts";
import { grantedTool } from "./call-request.ts";
import type { Host } from "./host.ts";
import { withOwnReasoning } from "./own-reasoning.ts";

/** The request of the coming model call, from history, instructions and what hooks edited for this call alone. */
export function assembleRequest(host: Host, turn: TurnState): ModelRequest {
  const { definition, identity } = host;
  const assembled = assembleMessages({
    instructions: instructionsOf(host, turn.turnId),
    compiler: definition.history,
    input: { ...compileInputOf(host, turn), ...withoutClosing(host, turn) },
    patches: patchesOf(host, turn),
  });
  const messages = withOwnReasoning(assembled, definition.model);
  // From the first excerpt on it stays: tools that come and go cost the provider's cache of the whole prompt.
  const all = definition.tools.definitions({ onDemand: host.hasExcerpts() });
  const isNarrowed = identity.grantedTools !== null || identity.deniedTools !== undefined;
  const tools = isNarrowed ? all.filter(({ name }) => grantedTool(host, name) !== undefined) : all;
  return {
    messages,
    ...(tools.length > 0 ? { tools } : {}),
    ...(definition.temperature === undefined ? {} : { temperature: definition.temperature }),
    ...(definition.responseFormat === undefined ? {} : { responseFormat: definition.responseFormat }),
  };
}

/**
 * A turn without input that follows one that was stopped goes on where that one was: what the runtime said of the stop, in
 * the agent's place, is left out of its prompts.
 */
function withoutClosing(host: Host, { turnId, number }: TurnState): { readonly history: readonly Message[] } {
  const history = host.history();
  const before = turnIdOf(host.identity.agentId, number - 1);
  const closingId = `${before}:end`;
  // It is one of the last messages before the open turn's: a long history is not searched.
  let index = (host.turnStart() ?? openTurnStart(history, turnId)) - 1;
  for (let at = history[index]; at && at.id !== closingId && isOfTurn(at, before); at = history[index]) index -= 1;
  if (history[index]?.id !== closingId) return { history };
  const isContinued = !history.some(({ id }, place) => place > index && id === `${turnId}:in`);
  return { history: isContinued ? history.toSpliced(index, 1) : history };
}

/** What the history compiler chooses from. */
export function compileInputOf(host: Host, { turnId, contextWindowSize, loadedCallIds }: TurnState): CompileInput {
  return {
    history: host.history(),
    turnId,
    turnStart: host.turnStart(),
    contextWindowSize,
    loadedCallIds: deepFreeze(loadedCallIds),
    earlier: host.archive(),
  };
}

/**
 * The request as a model adapter is given it: with a list of its own, for it may be anybody's code and add to the list. The
 * messages in it are frozen.
 */
export function lent(request: ModelRequest): ModelRequest {
  return { ...request, messages: [...request.messages] };
}

const digests = new WeakMap<Message, string>();

/** The same prompt gives the same hash; message ids and times do not count. Each message is digested once. */
export function promptHashOf(messages: readonly Message[]): string {
  let all = "";
  for (const message of messages) {
    let digest = digests.get(message);
    if (digest === undefined) {
      const toolCalls = message.role === "assistant" ? (message.toolCalls ?? null) : null;
      digest = shortHash(JSON.stringify([message.role, message.content, toolCalls]));
      digests.set(message, digest);
    }
    all += digest;
  }
  return shortHash(all);
}

function instructionsOf(host: Host, turnId: string): string {
  const { instructions } = host.definition;
  if (typeof instructions === "string") return instructions;
  const resolved = host.memory(turnId).entries.find(isResolved);
  return resolved?.text ?? "";
}

function isResolved(entry: { type: string }): entry is EntryOf<"instructions.resolved"> {
  return entry.type === "instructions.resolved";
}

/** What `beforeLlm` hooks changed for the coming call. */
export function patchesOf(host: Host, turn: TurnState): HookPatch[] {
  if (turn.appliedHooks.length === 0) return [];
  const patches: HookPatch[] = [];
  for (const entry of host.memory(turn.turnId).entries) {
    if (entry.type === "model.responded") patches.length = 0;
    if (entry.type === "hook.applied" && entry.hook === "beforeLlm") patches.push(entry.patch);
  }
  return patches;
}
