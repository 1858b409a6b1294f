import { type Runtime, textOf } from "../../src/index.ts";
import type { EntryOf } from "../../src/state/index.ts";
import type { TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import { taskPrefix } from "../model/script.ts";
import { hashOf, isEnd, type SeenEvent, type ServedClient } from "../serving/client.ts";

/** Longest time to read an idle tree. */
const READ_MS = 30_000;

export interface TreeEvent extends SeenEvent {
  readonly agentId: string;
  readonly turnId: string | undefined;
}

/** The data of a client at its end. */
export type ClientRecord = Readonly<Pick<ServedClient, "agentId">> & {
  readonly [Fact in "turns" | "seen" | "faults"]: Readonly<ServedClient[Fact]>;
};

/** Compares the events a client received over all connections with the store. `events`: all of the tree, or a prefix. */
export function clientViolations(client: ClientRecord, tree: TreeEvidence, events: readonly TreeEvent[]): string[] {
  const { agentId, seen } = client;
  // The client left after the end of its last turn.
  const rest = events.slice(seen.length);
  const turns = client.turns.flatMap((turn) => {
    const expected = eventsOfTurn(events, agentId, turn.turnIds[0] ?? "");
    return turn.seen ? differences(`${agentId}, the stream of ${turn.key}`, turn.seen, expected) : [];
  });
  return [
    ...client.faults,
    ...differences(`${agentId}, the stream of the tree`, seen, events.slice(0, seen.length)),
    ...(rest.some((event) => event.agentId === agentId && isEnd(event.type))
      ? [`${agentId}: its stream lacked the end of the last turn`]
      : []),
    ...turns,
    ...turnViolations(client, tree, events),
  ];
}

/**
 * The durable events of a tree, read by a runtime that ran nothing: up to the end of its last turn, and at least `least`.
 */
export async function eventsOf(
  { rootAgentId, agents }: TreeEvidence,
  { reader, least }: { readonly reader: Runtime; readonly least: number },
): Promise<TreeEvent[]> {
  let open = agents.flatMap(({ entries }) => entries.filter(({ type }) => type === "turn.ended")).length;
  const events: TreeEvent[] = [];
  const signal = AbortSignal.timeout(READ_MS);
  for await (const event of reader.follow(rootAgentId, { signal })) {
    if (event.cursor === null) continue;
    const { type, agentId, turnId } = event;
    events.push({
      id: event.cursor,
      type,
      hash: hashOf(JSON.stringify(event)),
      agentId,
      turnId: turnId ?? undefined,
    });
    if (isEnd(type)) open -= 1;
    if (open <= 0 && events.length >= least) break;
  }
  return events;
}

/** The events of a root turn and of its descendants, which work for no other turn meanwhile. */
function eventsOfTurn(events: readonly TreeEvent[], rootAgentId: string, turnId: string): readonly TreeEvent[] {
  const from = events.findIndex((event) => event.turnId === turnId);
  const to = events.findIndex((event) => event.turnId === turnId && isEnd(event.type));
  return events.slice(from, to + 1).filter((event) => event.turnId === turnId || event.agentId !== rootAgentId);
}

/** Events that are missing, duplicated, or different from the store. */
function differences(where: string, seen: readonly SeenEvent[], expected: readonly SeenEvent[]): string[] {
  const length = Math.max(seen.length, expected.length);
  for (let index = 0; index < length; index += 1) {
    const [one, other] = [seen[index], expected[index]];
    if (one?.id === other?.id && one?.type === other?.type && one?.hash === other?.hash) continue;
    const [had, due] = [one, other].map((event) => (event ? `${event.type} ${event.id}` : "nothing"));
    const before = seen.slice(0, index).some(({ id }) => id === one?.id) ? ", which had come before" : "";
    return [`${where}: event ${index + 1} of ${expected.length} is ${had}${before}; the store has ${due}`];
  }
  return [];
}

/** Keys and turns in the journal correspond one to one, and all turns have ended in the journal and in the events. */
function turnViolations(client: ClientRecord, tree: TreeEvidence, events: readonly TreeEvent[]): string[] {
  const { agentId } = client;
  const root = tree.agents.find((agent) => agent.agentId === agentId);
  if (!root) return [`${agentId}: it is in no store`];
  const started = root.entries.filter((entry) => entry.type === "turn.started") as EntryOf<"turn.started">[];
  const inputs = new Map(root.messages.map(({ id, content }) => [id, textOf(content)]));
  const tasks = started.map(({ inputMessageIds }) => inputs.get(inputMessageIds[0] ?? "")?.slice(taskPrefix.length));
  const ended = tree.agents.flatMap(({ entries }) => entries.filter(({ type }) => type === "turn.ended")).length;
  const told = events.filter(({ type }) => isEnd(type)).length;
  return [
    ...client.turns.flatMap(({ key, task, turnIds }) => {
      const own = started.filter((_, index) => tasks[index] === task).map(({ turnId }) => turnId);
      const ids = new Set([...own, ...turnIds]);
      if (own.length === 1 && ids.size === 1) return [];
      return [`${agentId} ${key}: ${own.length} turns have its input; it received ${[...ids].join(", ")}`];
    }),
    ...(started.length === client.turns.length
      ? []
      : [`${agentId}: ${client.turns.length} turns were requested, ${started.length} started`]),
    ...(told === ended ? [] : [`${agentId}: ${ended} turns ended, ${told} events report an end`]),
  ];
}
