import { agentMachine, toolCallMachine, turnMachine } from "../machines/index.ts";
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

/**
 * The machines with their effects in place, made once for all agents: providing per agent halves the speed.
 */
export const liveToolCallMachine = toolCallMachine.provide({
  actors: { performCall, enqueueCall, spawnOrdered, settleChild, settleWait, reviewCall },
});

export const liveTurnMachine = turnMachine.provide({
  actors: {
    receive,
    think,
    decide,
    settleRound,
    interruptOpenWork,
    complete,
    endTurn,
    toolCall: liveToolCallMachine,
  },
});

export const liveAgentMachine = agentMachine.provide({ actors: { confirmPause, turn: liveTurnMachine } });
