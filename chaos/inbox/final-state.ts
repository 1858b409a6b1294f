import type { Message } from "../../src/index.ts";
import type { Entry } from "../../src/state/index.ts";
import type { TreeEvidence } from "../../src/testing/simulation/evidence.ts";

/**
 * The final state of a tree, independent of timing and order: its messages, the outcomes of calls, requests and turns, its
 * usage, and leftover items.
 */
export function finalStateOf({ agents, accounts }: TreeEvidence): Readonly<Record<string, unknown>> {
  const states = agents.map(({ agentId, record, entries, messages, inbox }) => {
    const { status, turnCount, openTurnId, queuedTurnIds, pause } = record;
    const said = inCallOrder(messages).map((message) => ({
      role: message.role,
      content: message.content,
      calls:
        message.role === "assistant" ? message.toolCalls?.map(({ callId, name }) => `${name} ${callId}`) : undefined,
      of: message.role === "tool" ? message.callId : undefined,
    }));
    const ends = entries.flatMap(endOf).toSorted();
    return [agentId, { status, turnCount, openTurnId, queuedTurnIds, pause, said, ends, inbox: inbox.length }];
  });
  const inOrder = accounts.toSorted((one, other) => (one.id < other.id ? -1 : 1));
  const books = inOrder.map(({ id, used: { tokens, steps, toolCalls }, reserved, activeCount }) => {
    return [id, { tokens, steps, toolCalls, reserved: reserved.tokens, activeCount }];
  });
  return { agents: Object.fromEntries(states), accounts: Object.fromEntries(books) };
}

/** The results of one answer, in the order of their calls. */
function inCallOrder(messages: readonly Message[]): readonly Message[] {
  const place = (message: Message, index: number): string => {
    const answer = messages.slice(0, index).filter(({ role }) => role !== "tool").length;
    return `${String(answer).padStart(6, "0")} ${message.role === "tool" ? message.callId : ""}`;
  };
  const placed = messages.map((message, index) => ({ message, at: place(message, index) }));
  return placed.toSorted((one, other) => (one.at < other.at ? -1 : 1)).map(({ message }) => message);
}

/** The outcome in an entry; empty for entries without one. */
function endOf(entry: Entry): string[] {
  switch (entry.type) {
    case "turn.started":
      return [`${entry.turnId} began`];
    case "turn.ended":
      return [`${entry.turnId} ended ${entry.outcome}, ${entry.stopReason}`];
    case "tool.settled":
      return [`${entry.callId} settled ${entry.outcome}`];
    case "tool.started":
      return [`${entry.callId} started, attempt ${entry.attempt}`];
    case "request.opened":
      return [`${entry.callId} asked`];
    case "request.decided":
      return [`${entry.callId} decided ${entry.verdict}`];
    case "child.spawned":
      return [`${entry.childId} spawned`];
    case "child.ended":
      return [`${entry.childId} ended ${entry.outcome}`];
    default:
      return [];
  }
}
