import type { AddedMessage, HookContext } from "../hooks/index.ts";
import type { HookName, Message } from "../state/index.ts";
import { generateFor } from "./generate.ts";
import type { Host } from "./host.ts";
import { metadataOf } from "./model-outcome.ts";

/** What a hook knows of its run. `run` names it, so that its model calls can be told from others'. */
export function hookContextOf(host: Host, turnId: string, step: number, run: string, signal: AbortSignal): HookContext {
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

interface HookPlace {
  readonly turnId: string;
  readonly step: number;
  readonly hook: HookName;
  readonly index: number;
  readonly plugin: string;
}

/** The messages a hook added, as history keeps them. */
export function addedMessages(host: Host, place: HookPlace, added: readonly AddedMessage[]): Message[] {
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
