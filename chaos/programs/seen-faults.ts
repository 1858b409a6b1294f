import { eventsOf, type TroupeEvent, textOf } from "../../src/state/index.ts";
import type { AgentEvidence } from "../../src/testing/simulation/evidence.ts";
import { type Ended, entriesOf, linesOf } from "./evidence-lines.ts";
import { digestOf, eventDigest, type WorldLine } from "./world.ts";

/**
 * Prompts equal the stored data: the conversation's messages in order, all messages before the turn, and the prompt hash in
 * the intent. The model was called only after that intent was committed.
 */
export function promptFaults(agent: AgentEvidence, lines: readonly WorldLine[]): string[] {
  const stored = new Map(agent.messages.map((message, place) => [message.id, { message, place }]));
  const grants = Map.groupBy(entriesOf(agent, "model.requested"), ({ turnId, step }) => `${turnId}:${step}`);
  const asked = linesOf(lines, "asked").filter(({ turnId }) => turnId.startsWith(`${agent.agentId}#`));
  return asked.flatMap(({ turnId, step, ids, digest, promptHash, isGranted }) => {
    const where = `${turnId}:${step}`;
    const faults = isGranted ? [] : [`${where}: the model was asked before its intent was committed`];
    const granted = grants.get(where) ?? [];
    if (!granted.some((grant) => grant.promptHash === promptHash))
      faults.push(`${where}: its prompt is not the granted one`);
    const known = ids.flatMap((id) => stored.get(id) ?? []);
    if (known.length < ids.length) return [...faults, `${where}: its prompt shows messages that are not stored`];
    if (digestOf(known.map(({ message }) => message)) !== digest)
      faults.push(`${where}: its prompt shows other texts than are stored`);
    // In prompts, results are in the order of their calls; they are stored in the order in which they ended.
    const places = known.flatMap(({ message, place }) => (message.role === "tool" ? [] : [place]));
    if (places.some((place, index) => place <= (places[index - 1] ?? -1)))
      faults.push(`${where}: its prompt is in another order`);
    const begun = stored.get(`${turnId}:in`)?.place ?? 0;
    const shown = new Set(ids);
    const missing = agent.messages.slice(0, begun).filter(({ id }) => !shown.has(id));
    if (missing.length > 0) faults.push(`${where}: its prompt lacks ${missing.map(({ id }) => id).join()}`);
    return faults;
  });
}

/**
 * A follower of a tree receives the events of its journal once each, in order, up to the last one stored when it left.
 * Later events must be of kinds that a finished tree may still get.
 */
export function followerFaults(ended: Ended): string[] {
  const { program, tree, rows, lines } = ended;
  if (!program.isWatched) return [];
  const agents = new Map(tree.agents.map((agent) => [agent.agentId, agent]));
  const texts = new Map(
    tree.agents.flatMap(({ messages }) => messages.map(({ id, content }) => [id, textOf(content)])),
  );
  const due = rows.flatMap(({ agentId, cursor, entries }) => {
    const record = agents.get(agentId)?.record;
    return record ? entries.flatMap((entry) => eventsOf(entry, record, cursor, (id) => texts.get(id) ?? "")) : [];
  });
  const seen = linesOf(lines, "seen");
  const last = linesOf(lines, "left").at(-1)?.last;
  // Without a `left` line, all events are expected.
  const stayed = last === undefined ? due.length : due.findIndex(({ cursor }) => cursor === last) + 1;
  for (const [index, event] of due.entries()) {
    const line = seen[index];
    if (line === undefined) {
      const missed = due.slice(index);
      // A warning about the use of the last commit may be written after all followers have left.
      if (missed.every(({ type }) => type === "budget.warning")) return [];
      if (index < stayed)
        return [`its follower did not receive the last ${missed.length} events, from ${event.type} on`];
      const strange = missed.find((one) => !mayComeToRest(one, ended));
      return strange === undefined
        ? []
        : [`${strange.type} was added to ${strange.agentId} after its tree had finished`];
    }
    if (line.cursor !== event.cursor)
      return [`its follower received ${line.cursor} (${line.digest}) instead of ${event.cursor} (${event.type})`];
    if (line.digest !== eventDigest(event))
      return [`its follower received another ${event.type} at ${line.cursor} than is stored`];
  }
  return seen.length > due.length ? [`its follower received ${seen.length - due.length} events too many`] : [];
}

/**
 * Workers pause an agent when its code touches the world. The last turn may end before such a pause arrives; the pause then
 * arrives in a finished tree, which the program's driver has already left.
 */
function mayComeToRest(event: TroupeEvent, { program, isQueued }: Ended): boolean {
  if (event.type === "budget.warning") return true;
  const isPaused = event.type === "lifecycle.changed" && event.status === "paused";
  return isPaused && isQueued && program.acts.some(({ does }) => does.startsWith("pause"));
}
