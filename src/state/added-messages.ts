import type { EntryOf, EntryType } from "./entry.ts";

const none = (): readonly string[] => [];

function given(id: string | null | undefined): readonly string[] {
  return id === null || id === undefined ? [] : [id];
}

/** One property per entry type, so that the compiler reports a missing type. */
const addedBy: { readonly [Type in EntryType]: (entry: EntryOf<Type>) => readonly string[] } = {
  "conversation.seeded": ({ messageIds }) => messageIds,
  "turn.started": ({ inputMessageIds }) => inputMessageIds,
  "hook.applied": ({ patch }) => patch.addedMessageIds,
  "messages.released": ({ messageIds }) => messageIds,
  "output.checked": ({ callId, valid, messageId, repairMessageId }) =>
    callId !== undefined && valid ? [messageId] : given(repairMessageId),
  "context.compacted": ({ summaryMessageId }) => given(summaryMessageId),
  "model.responded": ({ messageId }) => [messageId],
  "model.failed": ({ repairMessageId }) => given(repairMessageId),
  "tool.settled": ({ messageId }) => [messageId],
  // A report within a turn is added by `messages.released`.
  "child.reported": ({ turnId, messageId }) => (turnId === undefined ? [messageId] : []),
  // A turn that was stopped without an answer ends with a message that no other entry adds.
  "turn.ended": ({ turnId, outputMessageId }) => given(outputMessageId === `${turnId}:end` ? outputMessageId : null),
  "agent.starting": none,
  "agent.started": none,
  "agent.pausing": none,
  "agent.paused": none,
  "agent.resumed": none,
  "agent.shutdown": none,
  "conversation.cleared": none,
  warning: none,
  // Its message is added by `messages.released`.
  "turn.steered": none,
  "instructions.resolved": none,
  "hooks.settled": none,
  "turn.waiting": none,
  "stop.signalled": none,
  "timer.due": none,
  "budget.warning": none,
  "budget.freed": none,
  "budget.changed": none,
  "effect.failed": none,
  "call.gated": none,
  "tool.started": none,
  "tool.retrying": none,
  "tool.noted": none,
  "tool.billed": none,
  "call.reviewed": none,
  "request.opened": none,
  "request.decided": none,
  "context.expanded": none,
  "context.loaded": none,
  "child.spawned": none,
  "child.ended": none,
  "child.ordered": none,
  "child.awaited": none,
  "call.waiting": none,
  "call.expired": none,
  "artifact.saved": none,
  "intent.refused": none,
  "model.requested": none,
  "generate.requested": none,
  "generate.responded": none,
  "generate.failed": none,
};

/** Ids of the messages that an entry adds to its agent's conversation, in order. */
export function messagesAddedBy<Type extends EntryType>(entry: EntryOf<Type>): readonly string[] {
  return addedBy[entry.type as Type](entry);
}
