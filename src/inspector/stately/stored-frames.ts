import type { AgentRecord, JournalRow } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type MachineAt, machinesAt } from "../replay/machines.ts";
import { type ActorFrame, FRAME_VERSION } from "./frames.ts";
import { MOST_ACTORS } from "./tree-frames.ts";
import { chartOf, type MachineName } from "./visible.ts";

/** Stores whose runs a client may see. */
export interface StoredTrees {
  readonly stores: Stores;
  readonly tenant: string;
}

/**
 * The actors of a stored tree in the states folded from their journals, parents first. Without `rootId`, the newest tree.
 * `isKnown` returns true for agents to skip. Empty if no store has the tree.
 */
export async function storedFrames(
  trees: Iterable<StoredTrees>,
  rootId: string | undefined,
  isKnown: (agentId: string) => boolean,
): Promise<readonly ActorFrame[]> {
  const newest: { readonly tree: StoredTrees; readonly root: AgentRecord }[] = [];
  for (const tree of trees) {
    const { stores, tenant } = tree;
    const root =
      rootId === undefined
        ? (await stores.listAgents({ tenant, rootsOnly: true, order: "newest", limit: 1 }))[0]
        : await stores.readAgent({ tenant, agentId: rootId });
    if (root) newest.push({ tree, root });
  }
  const found = newest.toSorted((one, other) => other.root.createdAt - one.root.createdAt)[0];
  if (!found) return [];
  const { stores, tenant } = found.tree;
  const { rootAgentId } = found.root;
  const agents = await stores.listAgents({ tenant, rootAgentId, limit: MOST_ACTORS });
  const frames: ActorFrame[] = [];
  for (const record of agents.toSorted((one, other) => one.depth - other.depth)) {
    if (frames.length >= MOST_ACTORS) break;
    if (isKnown(record.agentId)) continue;
    frames.push(...framesOf(record, await stores.readJournal({ tenant, agentId: record.agentId }, 1)));
  }
  return frames;
}

function framesOf(record: AgentRecord, rows: readonly JournalRow[]): ActorFrame[] {
  const { agentId, parentAgentId, rootAgentId } = record;
  const { agent, turn, calls, seq, at } = machinesAt(agentId, rows);
  const actor = (sessionId: string, parentId: string | null, machine: MachineAt, name: MachineName): ActorFrame => ({
    type: "@xstate.actor",
    sessionId,
    rootId: rootAgentId,
    createdAt: String(at),
    // Cannot collide with the ids of live frames, which are numbers.
    id: `${sessionId}@${seq}`,
    _version: FRAME_VERSION,
    name: sessionId,
    parentId: parentId ?? undefined,
    definition: chartOf(name),
    snapshot: { status: machine.isOver ? "done" : "active", value: machine.value },
  });
  const frames = [actor(agentId, parentAgentId, agent, "agent")];
  if (!turn) return frames;
  frames.push(actor(turn.turnId, agentId, turn, "turn"));
  return [...frames, ...calls.map((call) => actor(call.callId, turn.turnId, call, "toolCall"))];
}
