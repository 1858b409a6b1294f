import { takeText } from "../state/index.ts";
import type { GuardContext, HookContext } from "../hooks/index.ts";
import { generateFor } from "./generate.ts";
import { type Host, isWarnedOf, type Warning } from "./host.ts";
import { contextPercentOf, runAgentOf, traceOf } from "./run-context.ts";

/** One run of a hook. */
export interface HookRun {
  readonly turnId: string;
  readonly step: number;
  /** Its name, under which its model calls are journalled. */
  readonly run: string;
  /** Its warnings, journalled with its changes. */
  readonly warnings: Warning[];
}

/** Creates the context that is passed to a hook. */
export function hookContextOf(host: Host, { turnId, step, run, warnings }: HookRun, signal: AbortSignal): HookContext {
  const turn = host.turn(turnId);
  return {
    agent: runAgentOf(host),
    turnId,
    step,
    prompt: host.memory(turnId).prompt,
    actorId: turn?.actorId ?? null,
    get auth() {
      return host.auth(turnId);
    },
    contextPercent: contextPercentOf(host, turn),
    get trace() {
      return traceOf(host, turnId);
    },
    signal,
    generate: generateFor(host, turnId, step, `${run}@${step}`, signal),
    emitWarning(givenCode, givenMessage) {
      const code = takeText(givenCode, "the code passed to emitWarning()");
      const message = takeText(givenMessage, "the message passed to emitWarning()");
      if (warnings.some((one) => one.code === code) || isWarnedOf(host, turnId, code)) return false;
      warnings.push({ code, message });
      return true;
    },
  };
}

/** Creates the context that is passed to a guard. Its model calls are journalled under `run`. */
export function guardContextOf(
  host: Host,
  { turnId, step, run }: Omit<HookRun, "warnings">,
  signal: AbortSignal,
): GuardContext {
  const { agent, prompt, actorId, generate } = hookContextOf(host, { turnId, step, run, warnings: [] }, signal);
  return { agent, turnId, step, prompt, actorId, signal, generate };
}
