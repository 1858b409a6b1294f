import type { AgentTool } from "../agents/index.ts";
import { workingOn } from "../base/index.ts";
import { expandedWindow } from "../context/index.ts";
import { type CallState, type Json, meantCall, type Message } from "../state/index.ts";
import { type InternalTool, type ReadArtifactArguments, readArtifactText } from "../tools/index.ts";
import { guardedResult, ownResultRun } from "./guards.ts";
import type { Host } from "./host.ts";
import { compileInputOf } from "./prompt.ts";
import { type CallResult, errorResult, settleCall } from "./tool-calls.ts";

/** Maximum length of the excerpt of one call's arguments in a list. */
const EXCERPT_CHARACTERS = 200;

/**
 * Runs a tool for the agent's own context. It has no external effect, so it needs no intent and does not count as a tool call;
 * its change is an entry.
 */
export async function runInternalTool(
  host: Host,
  call: CallState,
  tool: InternalTool,
  signal: AbortSignal,
): Promise<void> {
  const args = (call.gate?.arguments ?? {}) as Readonly<Record<string, Json>>;
  switch (tool.name) {
    case "load_history":
      return loadHistory(host, call);
    case "list_tool_calls":
      return listToolCalls(host, call, args);
    case "load_tool_results":
      return loadToolResults(host, call, args);
    case "read_artifact":
      return await readArtifact(host, call, args as unknown as ReadArtifactArguments, signal);
    default:
      tool.name satisfies never;
  }
}

/** Marks the result as internal: such a call has no entry for its start. */
function settle(host: Host, call: CallState, result: CallResult): void {
  settleCall(host, call, result, { isInternal: true });
}

function loadHistory(host: Host, call: CallState): void {
  const { turnId, step, callId } = call;
  const turn = host.turn(turnId);
  const { history } = host.definition;
  const shown = turn?.contextWindowSize ?? history.contextWindowSize ?? 0;
  const window = turn && expandedWindow(history, compileInputOf(host, turn));
  if (!window || window.size <= shown) {
    return settle(host, call, { outcome: "success", text: "There are no older messages: you see all of them." });
  }
  const { size, total } = window;
  host.append({ type: "context.expanded", turnId, step, callId, size });
  const text = `${size - shown} older messages are now in your context; ${Math.max(0, total - size)} more can be loaded.`;
  settle(host, call, { outcome: "success", text });
}

interface EarlierCall {
  readonly callId: string;
  readonly name: string;
  readonly arguments: string;
  readonly failed: boolean;
}

/** External calls with their results, newest first; internal calls cannot be loaded again. */
function earlierCalls(host: Host): EarlierCall[] {
  const results = new Map<string, Message>();
  for (const message of host.archive()) if (message.role === "tool") results.set(message.callId, message);
  return host
    .archive()
    .flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))
    .map(meantCall)
    .filter(({ callId, name }) => results.has(callId) && !isInternal(host.definition.tools.get(name)))
    .map(({ callId, name, arguments: text }) => {
      const result = results.get(callId);
      return { callId, name, arguments: text, failed: result?.role === "tool" && result.isError === true };
    })
    .toReversed();
}

function isInternal(tool: AgentTool | undefined): boolean {
  return tool?.kind === "internal";
}

function listToolCalls(host: Host, call: CallState, args: Readonly<Record<string, Json>>): void {
  const limit = typeof args["limit"] === "number" ? args["limit"] : 20;
  const wanted = earlierCalls(host).filter(({ name }) => typeof args["name"] !== "string" || name === args["name"]);
  const lines = wanted.slice(0, limit).map(({ callId, name, arguments: text, failed }) => {
    const excerpt = text.length > EXCERPT_CHARACTERS ? `${text.slice(0, EXCERPT_CHARACTERS)}…` : text;
    return `${callId} ${name}(${excerpt}) ${failed ? "failed" : "succeeded"}`;
  });
  const text = lines.length === 0 ? "There are no earlier tool calls." : lines.join("\n");
  settle(host, call, { outcome: "success", text });
}

function loadToolResults(host: Host, call: CallState, args: Readonly<Record<string, Json>>): void {
  const { turnId, step, callId } = call;
  const asked = Array.isArray(args["callIds"]) ? args["callIds"].filter((id) => typeof id === "string") : [];
  const known = new Set(earlierCalls(host).map((earlier) => earlier.callId));
  const callIds = asked.filter((id) => known.has(id));
  const unknown = asked.filter((id) => !known.has(id));
  if (callIds.length === 0) {
    const text = `None of these calls is known: ${asked.join(", ")}. list_tool_calls gives the ids.`;
    return settle(host, call, errorResult(text, "not_found"));
  }
  host.append({ type: "context.loaded", turnId, step, callId, callIds });
  const missing = unknown.length === 0 ? "" : ` Not known: ${unknown.join(", ")}.`;
  settle(host, call, { outcome: "success", text: `Loaded ${callIds.length} results into your context.${missing}` });
}

/** How many known ids the error for an unknown id lists. */
const NAMED_IDS = 10;

/** Reads only the agent's own artifacts, not those of subagents. */
async function readArtifact(
  host: Host,
  call: CallState,
  args: ReadArtifactArguments,
  signal: AbortSignal,
): Promise<void> {
  const artifact = await host.artifact(args.id);
  if (signal.aborted) return;
  if (!artifact) {
    const known = host.archive().flatMap((message) => (message.role === "tool" ? (message.artifactId ?? []) : []));
    const named = known.length === 0 ? "" : ` Results that were cut: ${known.slice(-NAMED_IDS).join(", ")}.`;
    const text = `You have no artifact ${JSON.stringify(args.id)}.${named}`;
    return settle(host, call, errorResult(text, "not_found"));
  }
  const reading = await workingOn(host.clock, () => readArtifactText(artifact, args, signal));
  if (signal.aborted) return;
  if (reading.ok) {
    const result = { outcome: "success", text: reading.text } as const;
    const guarded = await guardedResult(ownResultRun(host, call, signal), call, result);
    return signal.aborted ? undefined : settle(host, call, guarded);
  }
  settle(host, call, errorResult(reading.message, reading.code));
}
