import type { Host } from "../../actors/index.ts";
import { deepFreeze, harmless } from "../../base/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { Committed } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { ChildResults } from "./child-results.ts";
import type { Committer } from "../agent/committer.ts";
import type { LiveAgentsOptions } from "./live-agents-options.ts";
import { createSlotsByTool } from "../../tools/index.ts";
import { lostToOthers, type Succession } from "./succession.ts";
import type { Surroundings } from "../agent/live-view.ts";
import type { World } from "../agent/calls-in-flight.ts";

/** What those that live here share. */
interface SharedHere {
  readonly committer: Committer;
  readonly world: World;
  readonly children: ChildResults;
  readonly succession: Succession<Activation>;
  notify(agentIds: readonly string[]): void;
  activate(key: AgentKey): Promise<Activation>;
  onCommitted(activation: Activation, outcome: Committed): void;
  onLost(activation: Activation): void;
  onEffectOver(activation: Activation): void;
}

export function surroundingsOf(options: LiveAgentsOptions, here: SharedHere): Surroundings<Activation> {
  const { clock, prices, stores, part, random, auth, broadcast } = options;
  const { committer, world, children, succession } = here;
  return {
    clock,
    prices,
    stores,
    definitions: options.definitions,
    queues: part.queues,
    processId: options.process.processId,
    notify: (agentIds) => here.notify(agentIds),
    committer,
    random,
    inspect: options.onInspect && inspection(options.onInspect),
    world,
    slots: createSlotsByTool(),
    auth: (turnId) => auth.of(turnId),
    redactorOf: (turnId) => auth.redactorOf(turnId),
    resolveAuth: (identity, turnId, actorId) => auth.resolve(identity, turnId, actorId),
    onCommitted: (activation, outcome) => here.onCommitted(activation, outcome),
    viewersOf: (identity) => broadcast.viewersOf(identity),
    childResult: (activation, childId) => children.of(childId, activation.turnEntries),
    onLost: (activation) => here.onLost(activation),
    onRefused: (activation, error) => options.onRefused(activation, error),
    onFailed: (agentId, cause) => options.onFailed(agentId, cause),
    onEffectOver: (activation) => here.onEffectOver(activation),
    successor: async (activation): Promise<Host> => {
      succession.assertGoesOn(activation);
      return await here.activate(activation.key).catch(lostToOthers);
    },
  };
}

/** Whoever inspects sees the very contexts that the machines go on from. */
function inspection(onInspect: NonNullable<LiveAgentsOptions["onInspect"]>): typeof onInspect {
  return harmless("onInspect", (agentId, event) => {
    if ("snapshot" in event && "context" in event.snapshot) deepFreeze(event.snapshot.context);
    onInspect(agentId, event);
  });
}
