import { hashOfArguments, type RecordedCall } from "../../actors/index.ts";
import {
  type CallState,
  declareCall,
  type Entry,
  type EntryOf,
  foldCall,
  type Message,
  recordedCallId,
} from "../../state/index.ts";
import type { StoredTree } from "../../stores/index.ts";
import { RECORDED_CALLS, readRecordedCalls } from "../agent/recorded-calls.ts";
import type { CopiedIds } from "./copied-ids.ts";
import type { Past } from "./past-of.ts";

/**
 * The calls with an effect outside that the origin made after the point, with their results, in the order in which they ended. A fork of
 * a fork also has those that the first tree made and the second one did not.
 */
export function recordedCallsOf(tree: StoredTree, past: Past, ids: CopiedIds): RecordedCall[] {
  const before = new Set(past.rows.flatMap(({ entries }) => entries.flatMap((entry) => settledCall(entry) ?? [])));
  const calls = new Map<string, CallState>();
  const messages = new Map<string, Message>();
  const recorded: RecordedCall[] = [];
  const given = new Set<string>();
  for (const row of tree.rows) {
    for (const message of row.messages) messages.set(message.id, message);
    for (const entry of row.entries) {
      if (!("callId" in entry) || entry.callId === undefined) continue;
      const call = foldCall(calls.get(entry.callId) ?? declareCall(entry.callId, ""), entry);
      calls.set(entry.callId, call);
      if (entry.type !== "tool.settled") continue;
      if (entry.recorded !== undefined) given.add(entry.recorded);
      if (before.has(entry.callId)) continue;
      const one = recordedCall(
        tree,
        { agentId: row.agentId, call, entry, message: messages.get(entry.messageId) },
        ids,
      );
      if (one) recorded.push(one);
    }
  }
  const inherited = inheritedCalls(tree).filter(({ id }) => !given.has(id));
  return [...recorded, ...inherited.map((one) => ids.copy(one))];
}

function settledCall(entry: Entry): string | undefined {
  return entry.type === "tool.settled" ? entry.callId : undefined;
}

interface SettledCall {
  readonly agentId: string;
  readonly call: CallState;
  readonly entry: EntryOf<"tool.settled">;
  readonly message: Message | undefined;
}

/** `undefined` for a call without an effect outside, and for one whose code did not run to its end. */
function recordedCall(
  tree: StoredTree,
  { agentId, call: { gate }, entry, message }: SettledCall,
  ids: CopiedIds,
): RecordedCall | undefined {
  const { callId, name, outcome, error, structured, artifactId } = entry;
  if (!gate || !message || (outcome !== "success" && outcome !== "error")) return undefined;
  if (gate.kind !== "client" && (gate.kind !== "function" || gate.effect === "none")) return undefined;
  const stored = tree.agents.find(({ record }) => record.agentId === agentId)?.artifacts ?? [];
  const { arguments: args, ...rest } = ids.copy({
    arguments: gate.arguments,
    content: message.content,
    error,
    ...(structured === undefined ? {} : { structured }),
    artifacts: stored.filter((one) => one.callId === callId).map(({ version: _version, ...artifact }) => artifact),
  });
  return { id: recordedCallId(callId), name, argumentsHash: hashOfArguments(args), outcome, artifactId, ...rest };
}

function inheritedCalls({ rootAgentId, agents }: StoredTree): readonly RecordedCall[] {
  const root = agents.find(({ record }) => record.agentId === rootAgentId);
  const artifact = root?.record.forkedFrom && root.artifacts.find(({ artifactId }) => artifactId === RECORDED_CALLS);
  return artifact ? readRecordedCalls(artifact.content, rootAgentId) : [];
}
