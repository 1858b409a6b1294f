import { InvalidInputError } from "../errors/index.ts";
import { beforeLlmHooks } from "./think.ts";
import { hooksAt } from "./hook-effects.ts";
import { inputHooks } from "./take-inputs.ts";
import { type HookPoint, runHook } from "./hook-run.ts";
import { compactNow, wasTooLong } from "./compact.ts";
import type { Host } from "./host.ts";
import { resultOfCall } from "./tool-calls.ts";

/*
 * The parts of effects that a replay repeats at their place in a journal. The host is at the state before the recorded entry, and its
 * `append` receives the entry of the repetition.
 */

/** Repeats one hook. */
export async function repeatHook(
  host: Host,
  place: HookPoint & { readonly index: number },
  signal: AbortSignal,
): Promise<void> {
  const { turnId, hook, callId } = place;
  switch (hook) {
    case "beforeLlm":
      await runHook(host, place, beforeLlmHooks(host, turnId), signal);
      return;
    case "afterUserInput":
      await runHook(host, place, inputHooks(host, turnId, place.inputId), signal);
      return;
    case "afterLlm":
      await runHook(host, place, hooksAt.afterLlm(host, turnId), signal);
      return;
    case "beforeTools":
      await runHook(host, place, hooksAt.beforeTools(host, turnId), signal);
      return;
    case "afterTools":
      await runHook(host, place, hooksAt.afterTools(host, turnId), signal);
      return;
    case "onComplete":
      await runHook(host, place, hooksAt.onComplete(host, turnId), signal);
      return;
    default: {
      const result = callId === undefined ? undefined : resultOfCall(host, turnId, callId);
      if (!result)
        throw new InvalidInputError(`the call ${callId} that the hook ${hook} reviews has no recorded result`);
      if (hook === "onError") await runHook(host, place, hooksAt.onError(host, result), signal);
      else await runHook(host, place, hooksAt.afterEachTool(host, result), signal);
    }
  }
}

/** Repeats a compaction. */
export async function repeatCompaction(host: Host, turnId: string, signal: AbortSignal): Promise<void> {
  const turn = host.turn(turnId);
  if (turn) await compactNow(host, { turn, isTooLong: wasTooLong(host, turn) }, signal);
}
