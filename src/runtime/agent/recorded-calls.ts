import { z } from "zod";
import { hashOfArguments, type RecordedCall } from "../../actors/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import {
  type AgentIdentity,
  artifactSchema,
  callOutcomeSchema,
  type CallState,
  contentSchema,
  jsonSchema,
  recordedCallId,
  storedErrorSchema,
} from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/** The artifact of a fork's root agent that contains the calls of its origin after the fork, in the order in which they ended. */
export const RECORDED_CALLS = "recorded-calls";

/** Recorded calls by the calls of this process that got them, because their results may not be committed yet. Per stores and tree. */
const claims = new WeakMap<Stores, Map<string, Map<string, string>>>();

/**
 * The recorded call whose result a call of a fork gets: the call with the same id, if its tool and arguments are equal, otherwise the
 * first one with equal tool and arguments whose result no call of the tree has. `undefined` if there is none.
 */
export async function recordedCallFor(
  stores: Stores,
  { tenant, rootAgentId }: Pick<AgentIdentity, "tenant" | "rootAgentId">,
  call: CallState,
): Promise<RecordedCall | undefined> {
  const artifact = await stores.artifact({ tenant, agentId: rootAgentId }, RECORDED_CALLS);
  if (!artifact) return undefined;
  const argumentsHash = hashOfArguments(call.gate?.arguments ?? null);
  const equal = readRecordedCalls(artifact.content, rootAgentId).filter(
    (one) => one.name === call.name && one.argumentsHash === argumentsHash,
  );
  if (equal.length === 0) return undefined;
  const used = await usedCalls(stores, tenant, rootAgentId);
  // Nothing is awaited from here on, so that two calls do not get the same one.
  const claimed = claimsOf(stores, rootAgentId);
  for (const [callId, id] of claimed) if (callId !== call.callId) used.add(id);
  const own = claimed.get(call.callId) ?? recordedCallId(call.callId);
  const found = equal.find(({ id }) => id === own && !used.has(id)) ?? equal.find(({ id }) => !used.has(id));
  if (found) claimed.set(call.callId, found.id);
  return found;
}

const recordedCallsSchema = z.array(
  z.object({
    id: z.string(),
    name: z.string(),
    argumentsHash: z.string(),
    outcome: callOutcomeSchema,
    content: contentSchema,
    structured: jsonSchema.optional(),
    error: storedErrorSchema.nullable(),
    artifactId: z.string().nullable(),
    artifacts: z.array(artifactSchema.omit({ version: true })),
  }),
);

/** Throws `CorruptRecordError` for a text that `fork()` has not written: the text may come from a file. */
export function readRecordedCalls(text: string, rootAgentId: string): readonly RecordedCall[] {
  try {
    const calls = recordedCallsSchema.safeParse(JSON.parse(text));
    if (calls.success) return calls.data;
  } catch {
    // The error below names the artifact.
  }
  throw new CorruptRecordError(
    `the artifact "${RECORDED_CALLS}" of agent "${rootAgentId}" is not a list of recorded calls`,
  );
}

const ALL = Number.MAX_SAFE_INTEGER;

/** The recorded calls whose results calls of the tree got. */
async function usedCalls(stores: Stores, tenant: string, rootAgentId: string): Promise<Set<string>> {
  const rows = await stores.readTree(tenant, rootAgentId, 0, ALL);
  const entries = rows.flatMap((row) => row.entries);
  return new Set(entries.flatMap((entry) => (entry.type === "tool.settled" ? (entry.recorded ?? []) : [])));
}

function claimsOf(stores: Stores, rootAgentId: string): Map<string, string> {
  const trees = claims.get(stores) ?? new Map<string, Map<string, string>>();
  claims.set(stores, trees);
  const known = trees.get(rootAgentId) ?? new Map<string, string>();
  trees.set(rootAgentId, known);
  return known;
}
