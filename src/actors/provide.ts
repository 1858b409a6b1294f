import type { ActorRefFrom } from "xstate";
import {
  type AgentEffectName,
  agentMachine,
  type CallEffectName,
  type EffectMeta,
  effectsCalledFor,
  toolCallMachine,
  type TurnEffectName,
  turnMachine,
} from "../machines/index.ts";
import { settleWait } from "./background-calls.ts";
import { agentEffect, type Effect, type Effects } from "./effect.ts";
import { endTurn, interruptOpenWork } from "./end-turn.ts";
import { complete, decide, receive, reviewCall, settleRound } from "./hook-effects.ts";
import { enqueueCall, performCall } from "./perform-call.ts";
import { settleChild, spawnOrdered } from "./subagent-calls.ts";
import { think } from "./think.ts";

const confirmPause = agentEffect("confirmPause", async (host, signal) => {
  await host.quiet();
  if (!signal.aborted) host.confirmPause();
});

type EffectName = AgentEffectName | TurnEffectName | CallEffectName;

const effects: Readonly<Record<EffectName, Effect>> = {
  confirmPause,
  receive,
  think,
  decide,
  settleRound,
  interruptOpenWork,
  complete,
  endTurn,
  performCall,
  enqueueCall,
  spawnOrdered,
  settleChild,
  settleWait,
  reviewCall,
};

/** By actor system, because all agents share the same machines. */
const runningEffects = new WeakMap<object, Effects>();

function runningEffectsOf(system: object): Effects {
  const found = runningEffects.get(system);
  if (!found) throw new Error("an effect was started in an actor system without a host");
  return found;
}

interface ActionArguments {
  readonly self: { readonly id: string };
  readonly system: object;
}

const actions = {
  startEffect: ({ self, system }: ActionArguments, { effect }: EffectMeta<EffectName>): void =>
    runningEffectsOf(system).start(self.id, effects[effect]),
  stopEffect: ({ self, system }: ActionArguments): void => runningEffectsOf(system).stop(self.id),
};

// Provided once for all agents, because providing per agent halves the speed.
export const liveToolCallMachine = toolCallMachine.provide({ actions });
export const liveTurnMachine = turnMachine.provide({ actions, actors: { toolCall: liveToolCallMachine } });
export const liveAgentMachine = agentMachine.provide({ actions, actors: { turn: liveTurnMachine } });

/** The root actor of one agent. */
export type LiveAgentActor = ActorRefFrom<typeof liveAgentMachine>;

/**
 * Starts the machines of an agent. From then on their states start and stop these effects. Effects of restored states are started
 * by this function, because restoring an actor runs no entry actions.
 */
export function startWithEffects(agent: LiveAgentActor, bound: Effects): void {
  runningEffects.set(agent.system, bound);
  agent.start();
  for (const { actorId, effect } of effectsCalledFor(agent)) bound.start(actorId, effects[effect as EffectName]);
}
