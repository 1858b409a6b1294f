import { type Runtime, textOf } from "../../src/index.ts";
import type { EntryOf } from "../../src/state/index.ts";
import type { TreeEvidence } from "../evidence.ts";
import { taskPrefix } from "../model/script.ts";
import { hashOf, isEnd, type SeenEvent, type ServedClient } from "../serving/client.ts";

/** Reading a tree that is at rest takes no longer. */
const READ_MS = 30_000;

export interface TreeEvent extends SeenEvent {
  readonly agentId: string;
  readonly turnId: string | undefined;
}

/** What a client knows when it leaves. */
export type ClientRecord = Readonly<Pick<ServedClient, "agentId">> & {
  readonly [Fact in "turns" | "seen" | "faults"]: Readonly<ServedClient[Fact]>;
};

/** What a client was told over all its connections, against the store. `events`: all of the tree, or all that it was told. */
export function clientViolations(client: ClientRecord, tree: TreeEvidence, events: readonly TreeEvent[]): string[] {
  const { agentId, seen } = client;
  // It has left after the end of its last turn.
  const rest = events.slice(seen.length);
  const turns = client.turns.flatMap((turn) => {
    const expected = eventsOfTurn(events, agentId, turn.turnIds[0] ?? "");
    return turn.seen ? differences(`${agentId}, the stream of ${turn.key}`, turn.seen, expected) : [];
  });
  return [
    ...client.faults,
    ...differences(`${agentId}, the stream of the tree`, seen, events.slice(0, seen.length)),
    ...(rest.some((event) => event.agentId === agentId && isEnd(event.type))
      ? [`${agentId}: its stream did not tell of the last turn`]
      : []),
    ...turns,
    ...turnViolations(client, tree, events),
  ];
}

/** The durable events of a tree, read anew from the store by one who has run nothing: up to its last turn's end, and at least so many. */
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

/** Those of a turn of the root and of the agents below it, which work for no other turn meanwhile. */
function eventsOfTurn(events: readonly TreeEvent[], rootAgentId: string, turnId: string): readonly TreeEvent[] {
  const from = events.findIndex((event) => event.turnId === turnId);
  const to = events.findIndex((event) => event.turnId === turnId && isEnd(event.type));
  return events.slice(from, to + 1).filter((event) => event.turnId === turnId || event.agentId !== rootAgentId);
}

/** What is missing, comes twice, or is other than in the store. */
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

/** Each key is exactly one turn of the journal, and each turn that of a key; all have ended, and the events say so. */
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
      return [`${agentId} ${key}: ${own.length} turns have its input; it was told of ${[...ids].join(", ")}`];
    }),
    ...(started.length === client.turns.length
      ? []
      : [`${agentId}: ${client.turns.length} turns were asked for, ${started.length} started`]),
    ...(told === ended ? [] : [`${agentId}: ${ended} turns ended, ${told} events say so`]),
  ];
}
