import type { AgentTool } from "../agents/index.ts";
import { faultPoint } from "../base/index.ts";
import type { CallState } from "../state/index.ts";
import { runControlTool } from "./background-calls.ts";
import { callEffect } from "./effect.ts";
import { settleHeldBack } from "./forked-calls.ts";
import { gateCall, gateEdited } from "./gate.ts";
import { guardedResult, ownResultRun } from "./guards.ts";
import type { Host } from "./host.ts";
import { runInternalTool } from "./internal-tools.ts";
import { openRequest, type Question } from "./open-request.ts";
import { runTool } from "./run-tool.ts";
import { isStubbed } from "./stub-rule.ts";
import { settleStubbed } from "./stubbed-calls.ts";
import { spawnSubagent } from "./subagent-calls.ts";
import { errorResult, grantedTool, hashOfArguments, resultOfOutput, settleCall } from "./tool-calls.ts";

/**
 * Runs one tool call from its declaration to its result. After a restart or a decision it reads the call's progress from the
 * fold: a gated call is not gated again, and a started one is repeated only if its effect class allows it.
 */
export const performCall = callEffect("performCall", async (host, { turnId, callId }, signal) => {
  const call = host.call(turnId, callId);
  if (!call || call.outcome !== null) return;
  const gated = await gate(host, call, signal);
  if (!gated || signal.aborted) return;
  const tool = grantedTool(host, turnId, gated.name);
  if (!tool) return settleGone(host, gated);
  const decided = await takeDecision(host, gated, tool, signal);
  if (signal.aborted) return;
  if (!decided || settleRefused(host, decided)) return;
  if (await settleHeldBack(host, decided, tool, signal)) return;
  if (await askFirst(host, decided, tool, signal)) return;
  if (signal.aborted || (await settleStubbed(host, decided, tool, signal))) return;
  if (tool.kind === "internal") await runInternalTool(host, decided, tool, signal);
  else if (tool.kind === "control") await runControlTool(host, decided, tool, signal);
  else if (tool.kind === "subagent") await spawnSubagent(host, decided, tool, signal);
  else if (tool.kind === "function") await runTool(host, decided, tool, signal);
});

/** The call with its verdict; `undefined` if it was refused and therefore settled. */
async function gate(host: Host, call: CallState, signal: AbortSignal): Promise<CallState | undefined> {
  if (call.gate) return settleRefused(host, call) ? undefined : call;
  const gated = await gateCall(host, call, signal);
  if (!gated || signal.aborted) return undefined;
  faultPoint("call.gated");
  return settleRefused(host, gated) ? undefined : gated;
}

/** Settles the call if its verdict is a refusal; returns false if the call is allowed. */
function settleRefused(host: Host, call: CallState): boolean {
  if (!call.gate || call.gate.verdict === "allowed") return false;
  const { verdict, message } = call.gate;
  const outcome = verdict === "failed" ? "error" : verdict;
  settleCall(host, call, errorResult(message ?? "the call was refused", verdict, outcome));
  return true;
}

/** Settles a call whose tool is missing from the definition. */
function settleGone(host: Host, call: CallState): void {
  const text = `The tool "${call.name}" is not available any more.`;
  settleCall(
    host,
    call,
    errorResult(text, "tool_unavailable", call.startedEpoch === null ? "error" : "outcome_unknown"),
  );
}

/** Maximum number of characters of an answer that the model sees; a longer answer is stored as an artifact. */
const ANSWER_CHARACTERS = 32_000;

/**
 * Opens the request that has to be decided before the call can continue, if one is needed: an approval, execution by the caller,
 * an answer, or credentials. Returns true if the call now waits, or has been refused.
 */
async function askFirst(host: Host, call: CallState, tool: AgentTool, signal: AbortSignal): Promise<boolean> {
  const question = await questionOf(host, call, tool);
  // The call was interrupted and settled while credentials were being resolved.
  if (signal.aborted) return true;
  if (question === "tampered") {
    const text = "The call was not run: its arguments are not those that were approved.";
    settleCall(host, call, errorResult(text, "arguments_changed", "denied"));
    return true;
  }
  if (question) openRequest(host, call, question);
  return question !== undefined;
}

async function questionOf(host: Host, call: CallState, tool: AgentTool): Promise<Question | "tampered" | undefined> {
  const { gate, turnId } = call;
  if (!gate) return undefined;
  const isStub = isStubbed(host.identity, tool);
  const describe = (): string =>
    tool.kind === "function" || tool.kind === "client" ? tool.describeCall(gate.arguments as never) : call.name;
  if (tool.kind === "client" && !isStub) {
    return { kind: tool.requestKind, prompt: describe(), expiresAfterMs: tool.expiresAfterMs };
  }
  if (gate.needsApproval) {
    // The approval is bound to the hash of the arguments, because stored ones may have been changed since (docs/people.md).
    if (hashOfArguments(gate.arguments) !== gate.argumentsHash) return "tampered";
    if (call.approvedHash !== gate.argumentsHash) {
      const expiresAfterMs = tool.kind === "function" ? tool.approvalExpiresAfterMs : undefined;
      return { kind: "approval", prompt: describe(), expiresAfterMs };
    }
  }
  if (tool.kind !== "function" || tool.auth !== "required" || isStub) return undefined;
  const isCut = call.startedEpoch !== null && tool.effect === "once";
  if (isCut || (await hasCredentials(host, turnId))) return undefined;
  return { kind: "auth", prompt: `Credentials are needed for ${describe()}` };
}

async function hasCredentials(host: Host, turnId: string): Promise<boolean> {
  if (host.auth(turnId)?.credentials !== undefined) return true;
  return (await host.resolveAuth(turnId))?.credentials !== undefined;
}

/** The call after the decision on its request; `undefined` if the decision settled it. */
async function takeDecision(
  host: Host,
  call: CallState,
  tool: AgentTool,
  signal: AbortSignal,
): Promise<CallState | undefined> {
  const { decision } = call;
  if (!decision || decision.asked || call.startedEpoch !== null) return call;
  const { verdict, reason } = decision;
  switch (verdict) {
    case "rejected":
      settleCall(host, call, errorResult(withReason("Rejected by user", reason), "rejected", "denied"));
      return undefined;
    case "expired":
      settleCall(host, call, errorResult("The request has expired without a decision.", "expired", "denied"));
      return undefined;
    case "answered": {
      const { text = "", isError = false, images, files = [], artifacts = [], structured } = decision.result ?? {};
      const output = {
        text,
        ...(images ? { images } : {}),
        ...(structured === undefined ? {} : { structured }),
        files: files.map((part) => {
          const artifact = artifacts.find(({ artifactId }) => artifactId === part.artifactId);
          return artifact ? { part, artifact } : { part };
        }),
      };
      const shown = resultOfOutput(host, call, output, ANSWER_CHARACTERS);
      const given = isError ? { ...shown, ...errorResult(shown.text, "client_error") } : shown;
      const guarded = await guardedResult(ownResultRun(host, call, signal), call, given);
      if (!signal.aborted) settleCall(host, call, guarded);
      return undefined;
    }
    case "edited":
      return await gateEdited(host, call, tool, { edited: decision.arguments ?? null, signal });
    case "approved":
    case "provided":
      return call;
    default:
      verdict satisfies never;
      return call;
  }
}

function withReason(what: string, reason: string | null): string {
  return reason === null || reason === "" ? `${what}.` : `${what}: ${reason}`;
}

/**
 * Adds a call to its queue, also after a restart or a pause: the queue keeps a single job, and the worker reads from the store
 * whether the call still has to run.
 */
export const enqueueCall = callEffect(
  "enqueueCall",
  async (host, { turnId, callId }, signal) => {
    const call = host.call(turnId, callId);
    if (!call || call.queue === null || call.outcome !== null) return;
    await host.queue.add(call, signal);
    faultPoint("tool.queued");
  },
  { isOutlived: true },
);
