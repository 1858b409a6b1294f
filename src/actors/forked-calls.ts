import type { AgentTool } from "../agents/index.ts";
import { abortable, readableThrown } from "../base/index.ts";
import type { CallState } from "../state/index.ts";
import { renderOutput } from "../tools/index.ts";
import { isHeldBack, type RecordedCall, type SimulatedCall, type SimulatedTool, simulationOf } from "./fork-rule.ts";
import type { Host } from "./host.ts";
import { storedErrorOf } from "./stored-error.ts";
import { type CallResult, errorResult, resultOfOutput, settleCall } from "./tool-calls.ts";

/** Settles a call whose tool is not run in this fork; returns false for any other call. */
export async function settleHeldBack(
  host: Host,
  call: CallState,
  tool: AgentTool,
  signal: AbortSignal,
): Promise<boolean> {
  if (!isHeldBack(host, tool, call.gate)) return false;
  const simulated = simulationOf(host.identity, tool.name);
  if (simulated) {
    const result = await simulate(host, call, { tool, simulated }, signal);
    if (!signal.aborted) settleCall(host, call, result);
    return true;
  }
  const recorded = await host.recordedCall(call);
  if (signal.aborted) return true;
  if (!recorded) settleCall(host, call, notRun(tool.name));
  else {
    settleCall(host, call, resultOfRecorded(call, recorded), { recorded: recorded.id });
  }
  return true;
}

/** The result of a call in a fork that is not run, and that has no recorded result. */
export function notRun(name: string): CallResult {
  const text = `The tool ${name} was not run: this is a fork of an earlier run, and no further recorded call of ${name} has these arguments.`;
  return errorResult(text, "not_run_in_fork", "denied");
}

function resultOfRecorded({ turnId, callId }: CallState, recorded: RecordedCall): CallResult {
  const { outcome, content, structured, error, artifactId } = recorded;
  const artifacts = recorded.artifacts.map((artifact) => ({ ...artifact, turnId, callId }));
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  return {
    outcome,
    text: parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join(""),
    images: parts.filter((part) => part.type === "image"),
    files: parts.filter((part) => part.type === "file"),
    structured,
    error: error ?? undefined,
    artifact: artifacts.find((artifact) => artifact.artifactId === artifactId),
    fileArtifacts: artifacts.filter((artifact) => artifact.artifactId !== artifactId),
  };
}

/** How many characters of a simulated client tool's result the model sees; longer ones become an artifact. */
const SIMULATED_CHARACTERS = 32_000;

async function simulate(
  host: Host,
  call: CallState,
  { tool, simulated }: { readonly tool: AgentTool; readonly simulated: SimulatedTool },
  signal: AbortSignal,
): Promise<CallResult> {
  const { agentId, definition } = host.identity;
  try {
    const output = await host.inFlight.run(`${call.callId}:simulated`, signal, async (callSignal) => {
      const of: SimulatedCall = { agentId, agentName: definition.name, callId: call.callId, signal: callSignal };
      const args = structuredClone(call.gate?.arguments ?? null);
      return renderOutput(await abortable(Promise.resolve(simulated(args as never, of)), callSignal));
    });
    const most = tool.kind === "function" ? tool.maxOutputCharacters : SIMULATED_CHARACTERS;
    return resultOfOutput(host, call, output, most);
  } catch (error) {
    const stored = storedErrorOf(readableThrown(error));
    return { outcome: "error", text: `Error: ${stored.message}`, error: stored };
  }
}
