import type { AgentTool } from "../agents/index.ts";
import { shortHash, stableStringify } from "../base/index.ts";
import type { CallState, EntryOf, ToolCallRequest } from "../state/index.ts";
import type { Host } from "./host.ts";

/** The call as the model wrote it. */
export function requestOfCall(host: Host, call: CallState): ToolCallRequest | undefined {
  const message = host.message(`${call.turnId}:${call.step}`);
  return message?.role === "assistant" ? message.toolCalls?.[call.index] : undefined;
}

/** The tool, if the agent has it and was granted it. What the journal or a model says grants nothing (S14). */
export function grantedTool(host: Host, name: string): AgentTool | undefined {
  const { grantedTools } = host.identity;
  if (grantedTools && !grantedTools.includes(name)) return undefined;
  return host.definition.tools.get(name);
}

/** Decides whether a call may run, and with which arguments; the decision is an entry. */
export function gateCall(host: Host, call: CallState): EntryOf<"call.gated"> {
  const { turnId, step, callId, name } = call;
  const place = { type: "call.gated", turnId, step, callId, name } as const;
  const refused = { arguments: null, argumentsHash: "" };
  const tool = grantedTool(host, name);
  if (!tool) {
    const message = host.definition.tools.unknownToolMessage(name);
    return gate(host, { ...place, ...refused, verdict: "not_found", kind: "function", effect: "none", message });
  }
  const { kind, effect } = tool;
  const parsed = tool.parse(requestOfCall(host, call)?.arguments ?? "");
  if (!parsed.ok)
    return gate(host, { ...place, ...refused, verdict: "invalid", kind, effect, message: parsed.message });
  const argumentsHash = shortHash(stableStringify(parsed.json));
  return gate(host, {
    ...place,
    verdict: "allowed",
    kind,
    effect,
    arguments: parsed.json,
    argumentsHash,
    message: null,
  });
}

function gate(host: Host, body: Omit<EntryOf<"call.gated">, "seq" | "at" | "epoch">): EntryOf<"call.gated"> {
  return host.append(body) as EntryOf<"call.gated">;
}
