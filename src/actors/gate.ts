import type { AgentTool } from "../agents/index.ts";
import { readableThrown } from "../base/index.ts";
import { AgentStopError } from "../errors/index.ts";
import { blockedText, createDraft } from "../hooks/index.ts";
import { type CallGate, type CallState, foldCall, type Json, openGate, type StopSignal } from "../state/index.ts";
import { type ParsedArguments, revocable } from "../tools/index.ts";
import { isHeldBack } from "./fork-rule.ts";
import { settleAbandonedRun } from "./generate.ts";
import { guardedCall, guardsCalls, guardWarnings } from "./guards.ts";
import { hookContextOf } from "./hook-context.ts";
import { appendWarnings, type Host, type Warning } from "./host.ts";
import { inTime, LONGEST_CHECK_MS } from "./in-time.ts";
import { runContextOf } from "./run-context.ts";
import { storedErrorOf } from "./stored-error.ts";
import { stopSignalOf } from "./stored-error.ts";
import { isStubbed } from "./stub-rule.ts";
import { argumentsTextOf, callPatchesOf, grantedTool, hashOfArguments, toolsOf } from "./tool-calls.ts";
import { debugError } from "./user-errors.ts";

type Verdict = Pick<CallGate, "verdict" | "message"> & Partial<Pick<CallGate, "arguments" | "needsApproval">>;

/**
 * Decides whether a call may run, with which arguments, and whether a person has to approve it. The decision is one entry, or
 * part of the intent to run the call if nothing can happen in between. Returns the call with its gate; `undefined` if the turn
 * was stopped meanwhile.
 */
export async function gateCall(host: Host, call: CallState, signal: AbortSignal): Promise<CallState | undefined> {
  const tool = grantedTool(host, call.turnId, call.name);
  if (!tool) {
    const message = toolsOf(host, call.turnId).unknownToolMessage(call.name);
    return append(host, call, undefined, { verdict: "not_found", message });
  }
  const denied = callPatchesOf(host, call).find((patch) => patch.denied !== undefined);
  if (denied) return append(host, call, tool, { verdict: "denied", message: denied.denied ?? "" });
  warnOfUnchecked(host, call.turnId, tool);
  const parsed = await parse(host, tool, argumentsTextOf(host, call), signal);
  if (!parsed.ok) return append(host, call, tool, { verdict: "invalid", message: parsed.message });
  const isHeld = isHeldBack(host, tool);
  const asks = tool.kind === "function" && !isHeld ? tool.needsApproval : false;
  const hasHooks = host.definition.hooks.beforeEachTool.length > 0 || guardsCalls(host);
  if (!hasHooks && typeof asks === "boolean") {
    if (!isHeld && startsAtOnce(tool)) return { ...call, gate: openGate(effectOf(host, tool), parsed.json) };
    return append(host, call, tool, { verdict: "allowed", message: null, arguments: parsed.json, needsApproval: asks });
  }
  await host.committed();
  if (signal.aborted) return undefined;
  const { verdict, left } = await host.inFlight.run(`${call.callId}:gate`, signal, async (callSignal) => {
    const left: LeftByHooks = { warnings: [], stops: [] };
    return { verdict: await judge(host, call, tool, parsed.json, { signal: callSignal, left }), left };
  });
  if (signal.aborted) return undefined;
  const { turnId } = call;
  appendWarnings(host, turnId, left.warnings);
  settleAbandonedRun(
    host,
    call,
    (run) => /^(?:beforeEachTool|guardCall):/.test(run) && run.includes(`:${call.callId}@`),
  );
  for (const stop of left.stops) host.append({ type: "stop.signalled", turnId, signal: stop });
  return append(host, call, tool, verdict);
}

/** Whether the call proposes its intent immediately after its gate: it needs no approval, no credentials and no slot. */
function startsAtOnce(tool: AgentTool): boolean {
  if (tool.kind !== "function") return false;
  return tool.needsApproval === false && tool.auth === undefined && tool.concurrency === undefined;
}

/** A stub has no effect: its calls may always be repeated. */
function effectOf({ identity }: Host, tool: AgentTool): CallGate["effect"] {
  return isStubbed(identity, tool) ? "none" : tool.effect;
}

/** Warns once per turn, when such a tool is called, that its arguments are not checked against its complete schema. */
function warnOfUnchecked(host: Host, turnId: string, tool: AgentTool): void {
  if (uncheckedOf(tool).length === 0) return;
  const lines = toolsOf(host, turnId).tools.flatMap((one) => uncheckedOf(one).map((part) => `${one.name} ${part}`));
  const more = lines.length > SHOWN_PARTS ? `, and ${lines.length - SHOWN_PARTS} more` : "";
  const message = `parts of schemas that are not checked: ${lines.slice(0, SHOWN_PARTS).join("; ")}${more}`;
  appendWarnings(host, turnId, [{ code: "schema_unchecked", message }]);
}

const SHOWN_PARTS = 5;

function uncheckedOf(tool: AgentTool): readonly string[] {
  return (tool.kind === "function" || tool.kind === "client" ? tool.unchecked : undefined) ?? [];
}

/** Parses and validates arguments, which may run code of the schema's author. Rejects if the call ends meanwhile. */
async function parse(host: Host, tool: AgentTool, text: string, signal: AbortSignal): Promise<ParsedArguments> {
  const message = `The tool ${tool.name} was not run: the check of its arguments took more than ${LONGEST_CHECK_MS} ms.`;
  const late = (): ParsedArguments => ({ ok: false, message });
  return await inTime(host, tool.parse(text), { ms: LONGEST_CHECK_MS, signal, late });
}

/**
 * Gates arguments that a person substituted for the model's: they are validated and guarded, but hooks do not run, since they must not
 * overrule a person.
 */
export async function gateEdited(
  host: Host,
  call: CallState,
  tool: AgentTool,
  { edited, signal }: { readonly edited: Json; readonly signal: AbortSignal },
): Promise<CallState> {
  const parsed = await parse(host, tool, JSON.stringify(edited), signal);
  if (!parsed.ok) return append(host, call, tool, { verdict: "invalid", message: parsed.message });
  await host.committed();
  const warnings: Warning[] = [];
  const guarded = await guardedArguments(host, call, tool, { args: parsed.json, signal, warnings });
  if (signal.aborted) return call;
  appendWarnings(host, call.turnId, warnings);
  settleAbandonedRun(host, call, (run) => run.startsWith("guardCall:") && run.includes(`:${call.callId}@`));
  if ("verdict" in guarded) return append(host, call, tool, guarded);
  if (hashOfArguments(guarded.args) !== hashOfArguments(parsed.json)) {
    // The person has approved what they wrote, not what a guard makes of it.
    const message = `The call of ${call.name} was blocked by a guard, which would change the arguments that a person has edited.`;
    return append(host, call, tool, { verdict: "denied", message });
  }
  return append(host, call, tool, {
    verdict: "allowed",
    message: null,
    arguments: parsed.json,
    needsApproval: call.gate?.needsApproval ?? true,
  });
}

function append(host: Host, call: CallState, tool: AgentTool | undefined, verdict: Verdict): CallState {
  const { turnId, step, callId, name } = call;
  const { arguments: args = null, needsApproval = false } = verdict;
  const entry = host.append({
    type: "call.gated",
    turnId,
    step,
    callId,
    name,
    verdict: verdict.verdict,
    kind: tool?.kind ?? "function",
    effect: tool ? effectOf(host, tool) : "none",
    arguments: args,
    argumentsHash: verdict.verdict === "allowed" ? hashOfArguments(args) : "",
    ...(needsApproval ? { needsApproval } : {}),
    message: verdict.message,
  });
  return foldCall(call, entry);
}

/**
 * Warnings and stops of hooks. They are journalled with the verdict, because the activation that ran the hooks may have ended.
 */
interface LeftByHooks {
  readonly warnings: Warning[];
  readonly stops: StopSignal[];
}

/** Runs the `beforeEachTool` hooks in order, then the tool's `needsApproval`. An error fails only this call. */
async function judge(
  host: Host,
  call: CallState,
  tool: AgentTool,
  given: Json,
  { signal, left }: { readonly signal: AbortSignal; readonly left: LeftByHooks },
): Promise<Verdict> {
  let args = given;
  const { turnId, step, callId, name } = call;
  for (const [index, { plugin, hook }] of host.definition.hooks.beforeEachTool.entries()) {
    try {
      const { draft, outcome } = createDraft("beforeEachTool", { call: { callId, name, arguments: args } });
      const run = { turnId, step, run: `beforeEachTool:${index}:${callId}`, warnings: left.warnings };
      await hook(draft, hookContextOf(host, run, signal));
      const { arguments: changed, denied, stop } = outcome();
      if (stop) left.stops.push({ ...stop, source: `hook:${plugin}` });
      if (denied !== undefined) return { verdict: "denied", message: denied };
      if (changed !== undefined) {
        const parsed = await parse(host, tool, JSON.stringify(changed), signal);
        if (!parsed.ok) return { verdict: "invalid", message: parsed.message };
        args = parsed.json;
      }
    } catch (error) {
      if (signal.aborted) throw error;
      debugError(`the hook beforeEachTool of "${plugin}"`, error, host.redactorOf(turnId));
      return verdictOfError(error, `hook:${plugin}`, left);
    }
  }
  try {
    const guarded = await guardedArguments(host, call, tool, { args, signal, warnings: left.warnings });
    if ("verdict" in guarded) return guarded;
    args = guarded.args;
    return {
      verdict: "allowed",
      message: null,
      arguments: args,
      needsApproval: await asksFirst(host, call, tool, args, signal),
    };
  } catch (error) {
    if (signal.aborted) throw error;
    debugError(`needsApproval() of tool "${name}"`, error, host.redactorOf(turnId));
    return verdictOfError(error, `tool:${name}`, left);
  }
}

/** The arguments after the guards of calls, or the verdict that keeps the call from running. */
async function guardedArguments(
  host: Host,
  call: CallState,
  tool: AgentTool,
  { args, signal, warnings }: { readonly args: Json; readonly signal: AbortSignal; readonly warnings: Warning[] },
): Promise<{ readonly args: Json } | Verdict> {
  if (!guardsCalls(host)) return { args };
  const guarded = await guardedCall(host, call, args, signal);
  if (guarded.kind === "block") {
    const { plugin, reason } = guarded;
    warnings.push(...guardWarnings({ what: "tool_call", name: call.name, changed: [plugin], reason }));
    return { verdict: "denied", message: blockedText(`The call of ${call.name}`, plugin, reason) };
  }
  if (guarded.kind === "pass") return { args };
  warnings.push(...guardWarnings({ what: "tool_call", name: call.name, changed: guarded.plugins }));
  const parsed = await parse(host, tool, JSON.stringify(guarded.value), signal);
  return parsed.ok ? { args: parsed.json } : { verdict: "invalid", message: parsed.message };
}

/** An error of user code fails only the call; `AgentStopError` stops the turn, and the call does not run. */
function verdictOfError(thrown: unknown, source: string, { stops }: LeftByHooks): Verdict {
  const error = readableThrown(thrown);
  const { message } = storedErrorOf(error);
  if (!(error instanceof AgentStopError)) return { verdict: "failed", message: `Error: ${message}` };
  stops.push(stopSignalOf(error, source));
  return { verdict: "denied", message: `The run was stopped: ${message}` };
}

async function asksFirst(
  host: Host,
  call: CallState,
  tool: AgentTool,
  args: Json,
  signal: AbortSignal,
): Promise<boolean> {
  if (tool.kind !== "function" || isHeldBack(host, tool)) return false;
  if (typeof tool.needsApproval === "boolean") return tool.needsApproval;
  const lent = revocable(call.callId, () => runContextOf(host, call, signal));
  lent.redactWith(host.redactorOf(call.turnId));
  try {
    return await tool.needsApproval(args as never, lent.run);
  } finally {
    lent.revoke();
  }
}
