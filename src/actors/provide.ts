import type { AnyStateMachine } from "xstate";
import { agentMachine, compiled, toolCallMachine, turnMachine } from "../machines/index.ts";
import { settleWait } from "./background-calls.ts";
import { effectActor } from "./effect.ts";
import { endTurn, interruptOpenWork } from "./end-turn.ts";
import { complete, decide, receive, reviewCall, settleRound } from "./hook-effects.ts";
import { enqueueCall, performCall } from "./perform-call.ts";
import { settleChild, spawnOrdered } from "./subagent-calls.ts";
import { think } from "./think.ts";

const confirmPause = effectActor<undefined>("confirmPause", async (host, _input, signal) => {
  await host.quiet();
  if (!signal.aborted) host.confirmPause();
});

const effectsOfCall = { performCall, enqueueCall, spawnOrdered, settleChild, settleWait, reviewCall };
const effectsOfTurn = { receive, think, decide, settleRound, interruptOpenWork, complete, endTurn };

/** The machines with their effects in place, made once for all agents: providing per agent halves the speed. */
function machinesOf(made: <Machine extends AnyStateMachine>(machine: Machine) => Machine) {
  const toolCall = made(toolCallMachine.provide({ actors: effectsOfCall }));
  const turn = made(turnMachine.provide({ actors: { ...effectsOfTurn, toolCall } }));
  const agent = made(agentMachine.provide({ actors: { confirmPause, turn } }));
  return { agent, turn, toolCall };
}

const live = machinesOf(compiled);
export const liveToolCallMachine = live.toolCall;
export const liveTurnMachine = live.turn;
export const liveAgentMachine = live.agent;

let watched: typeof liveAgentMachine | undefined;

/** The machine of an agent whose steps somebody inspects: XState makes them, and tells of them. */
export function inspectedAgentMachine(): typeof liveAgentMachine {
  watched ??= machinesOf((machine) => machine).agent;
  return watched;
}
