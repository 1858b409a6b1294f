import type { AgentTool } from "../agents/index.ts";
import { faultPoint } from "../base/index.ts";
import { StubMismatchError } from "../errors/index.ts";
import { type CallState, type Entry, type SessionStub, STUB_MISMATCH_CODE } from "../state/index.ts";
import { renderOutput } from "../tools/index.ts";
import type { Host } from "./host.ts";
import { storedErrorOf } from "./stored-error.ts";
import { isStubbed, stubFor } from "./stub-rule.ts";
import { type CallResult, errorResult, resultOfOutput, settleCall, startCall } from "./tool-calls.ts";

/** How many characters of a stub's output the model sees, if its tool sets no limit; longer ones become an artifact. */
const STUB_CHARACTERS = 32_000;

/**
 * Settles a call of a stubbed session; returns false for any other call. It starts like a call that runs, so that it counts on the
 * budgets. A call that no stub answers fails its turn.
 */
export async function settleStubbed(
  host: Host,
  call: CallState,
  tool: AgentTool,
  signal: AbortSignal,
): Promise<boolean> {
  if (!isStubbed(host.identity, tool)) return false;
  // If an earlier owner has started the call, this is the same attempt.
  const begun =
    call.startedEpoch === null ? await startCall(host, call, { effect: "none", stubbed: true }, signal) : call;
  if (!begun || signal.aborted) return true;
  faultPoint("tool.intent");
  // There must be no await between the choice and the result, so that two calls of a round do not get the same use of a stub.
  const asked = { tool: tool.name, arguments: begun.gate?.arguments ?? null };
  const answer = stubFor(host.identity, asked, usesOf(host));
  if (answer.stub) settleCall(host, begun, resultOf(host, begun, tool, answer.stub), { stub: answer.index });
  else failBy(host, begun, answer.mismatch);
  return true;
}

/** The uses in the journal, and those that wait behind an undecided intent. */
function usesOf(host: Host): Readonly<Record<string, number>> {
  const uses: Record<string, number> = { ...host.stubUses };
  for (const index of host.undelivered().flatMap(stubOf)) uses[index] = (uses[index] ?? 0) + 1;
  return uses;
}

function stubOf(entry: Entry): number[] {
  return entry.type === "tool.settled" && typeof entry.stub === "number" ? [entry.stub] : [];
}

function resultOf(host: Host, call: CallState, tool: AgentTool, { output, error }: SessionStub): CallResult {
  if (error !== undefined) return { ...errorResult(error, "tool_error"), text: `Error: ${error}` };
  const most = tool.kind === "function" ? tool.maxOutputCharacters : STUB_CHARACTERS;
  return resultOfOutput(host, call, renderOutput(output ?? null), most);
}

/** Ends the call as an error, and its turn as failed. */
function failBy(host: Host, call: CallState, message: string): void {
  const { turnId } = call;
  const error = new StubMismatchError(message);
  host.noteFailure(turnId, error, undefined);
  settleCall(host, call, errorResult(message, STUB_MISMATCH_CODE), { isUnreviewed: true, stub: null });
  host.append({ type: "effect.failed", turnId, effect: "performCall", error: storedErrorOf(error) });
}
