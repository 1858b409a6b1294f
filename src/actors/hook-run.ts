import { faultPoint } from "../base/index.ts";
import { AgentStopError } from "../errors/index.ts";
import {
  type AddedMessage,
  type AfterToolsDraft,
  type BeforeLlmDraft,
  createDraft,
  type HookContext,
} from "../hooks/index.ts";
import { type HookName, hookKeyOf, type Message } from "../state/index.ts";
import { generateFor } from "./generate.ts";
import type { Host } from "./host.ts";
import { metadataOf } from "./model-outcome.ts";
import { stopSignalOf } from "./stop-signal.ts";

/** What a hook knows of its run. `run` names it, so that its model calls can be told from others'. */
function hookContextOf(host: Host, turnId: string, step: number, run: string, signal: AbortSignal): HookContext {
  const turn = host.turn(turnId);
  return {
    agent: runAgentOf(host),
    turnId,
    step,
    prompt: host.memory(turnId).prompt,
    actorId: turn?.actorId ?? null,
    signal,
    generate: generateFor(host, turnId, step, `${run}@${step}`, signal),
  };
}

export function runAgentOf(host: Host) {
  const { agentId, parentAgentId, rootAgentId, depth, sessionId, tenant, definition } = host.identity;
  return { agentId, name: definition.name, parentAgentId, rootAgentId, depth, sessionId, tenant };
}

/** Where a hook runs: the place is its name in the journal, and in the world. */
export interface HookPlace {
  readonly turnId: string;
  readonly step: number;
  readonly hook: HookName;
  /** In the order of registration, from 0. */
  readonly index: number;
  readonly plugin: string;
}

type HookCode = (draft: BeforeLlmDraft & AfterToolsDraft, run: HookContext) => void | Promise<void>;

/**
 * Runs one hook when all that came before it is committed, and appends what it changed. A hook is out in the world: an
 * agent that is restored in this process joins it. False when there is nothing more to do: it stopped the turn, or the
 * turn was stopped.
 */
export async function runHook(host: Host, place: HookPlace, code: HookCode, signal: AbortSignal): Promise<boolean> {
  const { turnId, step, hook, index, plugin } = place;
  await host.committed();
  if (signal.aborted) return false;
  const key = hookKeyOf(hook, index);
  try {
    const { added, patch } = await host.world.run(`${turnId}:${step}:${key}`, signal, async (worldSignal) => {
      const { draft, outcome } = createDraft(host.history(host.definition.maxMessages));
      await code(draft, hookContextOf(host, turnId, step, key, worldSignal));
      return outcome();
    });
    if (signal.aborted) return false;
    faultPoint("hook.effect");
    const messages = addedMessages(host, place, added);
    const addedMessageIds = messages.map(({ id }) => id);
    host.append(
      { type: "hook.applied", turnId, step, hook, plugin, index, patch: { ...patch, addedMessageIds } },
      { messages },
    );
    faultPoint("hook.result");
    return true;
  } catch (error) {
    if (signal.aborted || !(error instanceof AgentStopError)) throw error;
    host.append({ type: "stop.signalled", turnId, signal: stopSignalOf(error, `hook:${plugin}`) });
    return false;
  }
}

/** The messages a hook added, as history keeps them. */
function addedMessages(host: Host, place: HookPlace, added: readonly AddedMessage[]): Message[] {
  const { turnId, step, hook, index, plugin } = place;
  return added.map(({ role, content }, count) => ({
    id: `${turnId}:${step}:${hook}:${index}:${count}`,
    role,
    content,
    createdAt: host.clock.now(),
    origin: `hook:${plugin}`,
    metadata: metadataOf(host, turnId, step, true),
  }));
}
