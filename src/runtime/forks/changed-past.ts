import type { Limits } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type Content, type Entry, type Message, withoutReasoning } from "../../state/index.ts";
import type { CutPoint } from "./fork-points.ts";
import { numbered, type Past, type PastRow } from "./past-of.ts";

/** Changes to the past before the fork continues from it. */
export interface PastChanges {
  /** Contents that replace those of messages, by the message's id in the origin. */
  readonly messages: ReadonlyMap<string, Content>;
  /** The instructions of the open turn of the root agent. */
  readonly instructions?: string | undefined;
  /** A message of the user that is added to the open turn of the root agent. */
  readonly added?: Content | undefined;
  /** Limits of the open turn of the root agent; each replaces the recorded one of its name. */
  readonly limits?: Limits | undefined;
  /** Agents in whose open turn a function resolves the instructions again, because their definition is another one. */
  readonly resolvesAgain: ReadonlySet<string>;
}

/** The past with the changes. Throws `InvalidInputError` for a message that the past does not have. */
export function changedPast(past: Past, { turnId, at }: CutPoint, rootAgentId: string, changes: PastChanges): Past {
  const { messages, instructions, added, limits, resolvesAgain } = changes;
  assertInPast(past, messages);
  const ended = new Set(past.rows.flatMap(({ entries }) => entries.flatMap(endedTurn)));
  const rows = past.rows.map(
    (row): PastRow => ({
      ...row,
      entries: row.entries.flatMap((entry): Entry[] => {
        if (resolvesAgain.has(row.agentId) && entry.type === "instructions.resolved" && !ended.has(entry.turnId))
          return [];
        if (!limits || entry.type !== "turn.started" || entry.turnId !== turnId) return [entry];
        return [{ ...entry, limits: { ...entry.limits, ...limits } }];
      }),
      messages: row.messages.map((message) => withContent(message, messages.get(message.id))),
    }),
  );
  const last = past.rows.findLast(({ agentId }) => agentId === rootAgentId)?.entries.at(-1);
  const envelope = { seq: 1, at: last?.at ?? at, epoch: last?.epoch ?? 1, turnId };
  if (instructions !== undefined) {
    const entry: Entry = { type: "instructions.resolved", ...envelope, text: instructions, edited: true };
    rows.push({ agentId: rootAgentId, entries: [entry], messages: [] });
  }
  if (added !== undefined) {
    const id = `${turnId}:fork`;
    const entry: Entry = { type: "messages.released", ...envelope, messageIds: [id] };
    const message: Message = { id, role: "user", content: added, createdAt: envelope.at, origin: "user" };
    rows.push({ agentId: rootAgentId, entries: [entry], messages: [message] });
  }
  return numbered(past, rows);
}

function endedTurn(entry: Entry): readonly string[] {
  return entry.type === "turn.ended" ? [entry.turnId] : [];
}

/** Reasoning belongs to the answer as the model wrote it. */
function withContent(message: Message, content: Content | undefined): Message {
  if (content === undefined) return message;
  if (message.role === "assistant") return { ...withoutReasoning(message), content };
  if (message.role !== "tool") return { ...message, content };
  const { artifactId: _excerptOf, ...rest } = message;
  return { ...rest, content };
}

function assertInPast({ rows }: Past, messages: ReadonlyMap<string, Content>): void {
  const known = rows.flatMap((row) => row.messages.map(({ id }) => id));
  for (const id of messages.keys()) {
    if (known.includes(id)) continue;
    const shown = known.slice(-20).join(", ");
    throw new InvalidInputError(
      `edit.messages names "${id}", which the run does not have before this point; expected one of its ${known.length > 20 ? "last messages" : "messages"}: ${shown || "none"}`,
    );
  }
}
