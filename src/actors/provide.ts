import { agentMachine, toolCallMachine, turnMachine } from "../machines/index.ts";
import { complete } from "./complete.ts";
import { decide } from "./decide.ts";
import { effectActor } from "./effect.ts";
import { endTurn } from "./end-turn.ts";
import { enqueueCall } from "./enqueue-call.ts";
import { interruptOpenWork } from "./interrupt.ts";
import { performCall } from "./perform-call.ts";
import { receive } from "./receive.ts";
import { reviewCall } from "./review-call.ts";
import { settleRound } from "./settle-round.ts";
import { settleChild } from "./settle-child.ts";
import { spawnOrdered } from "./spawn-ordered.ts";
import { think } from "./think.ts";
import { settleWait } from "./wait-for-reports.ts";

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
