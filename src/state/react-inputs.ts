import type { Entry, EntryOf } from "./entry.ts";
import type { HookName } from "./entry-parts.ts";
import type { ReactStep } from "./react/index.ts";
import type { TurnState } from "./turn-state.ts";

/** Returns a message's text by its id. The live fold omits texts. */
export type TextLookup = (messageId: string) => string;

const noText: TextLookup = () => "";

/**
 * The ReAct inputs of one entry: none for most entries, otherwise at most two, plus one for each new message. The R state of a turn is
 * the replay of these inputs alone, so the runtime's own turns run on that core (R8).
 */
export function reactInputsOf(turn: TurnState, entry: Entry, textOf: TextLookup = noText): ReactStep[] {
  switch (entry.type) {
    case "turn.started":
      return entry.inputMessageIds.map((id) => received(id, entry.at, textOf));
    case "hook.applied":
      return [
        ...entry.patch.addedMessageIds.flatMap((id) => added(entry.hook, id, entry.at, textOf)),
        ...continued(turn, entry),
      ];
    case "messages.released":
      return entry.messageIds.map((id) => received(id, entry.at, textOf));
    case "output.checked":
      if (entry.callId !== undefined && entry.valid) return answeredByTool(turn, entry, textOf);
      return entry.repairMessageId === undefined ? [] : [received(entry.repairMessageId, entry.at, textOf)];
    case "model.failed":
      return entry.repairMessageId === undefined ? [] : [received(entry.repairMessageId, entry.at, textOf)];
    case "context.expanded":
      return [{ type: "context-window-expanded", timestamp: entry.at }];
    case "context.loaded":
      return [{ type: "history-tool-calls-added", toolCallIds: entry.callIds, timestamp: entry.at }];
    case "model.requested":
      return [{ type: "llm-message-started", messageId: entry.messageId, timestamp: entry.at }];
    case "model.responded":
      return [
        {
          type: "llm-message-completed",
          messageId: entry.messageId,
          content: textOf(entry.messageId),
          timestamp: entry.at,
        },
        observed(turn, entry),
      ];
    case "tool.settled":
      return [
        {
          type: "tool-call-completed",
          toolCallId: entry.callId,
          timestamp: entry.at,
          result:
            entry.outcome === "success"
              ? { isSuccess: true, content: textOf(entry.messageId), receivedAt: entry.at }
              : { isSuccess: false, error: textOf(entry.messageId), receivedAt: entry.at },
        },
      ];
    default:
      return [];
  }
}

function received(messageId: string, timestamp: number, textOf: TextLookup): ReactStep {
  return { type: "user-message-received", messageId, content: textOf(messageId), timestamp };
}

/** The result of a tool ends the loop as a final answer of the model would. */
function answeredByTool({ react }: TurnState, entry: EntryOf<"output.checked">, textOf: TextLookup): ReactStep[] {
  const { messageId, at: timestamp } = entry;
  return [
    { type: "llm-message-started", messageId, timestamp },
    { type: "llm-message-completed", messageId, content: textOf(messageId), timestamp },
    {
      type: "re-act-observed",
      timestamp,
      calledLlmAt: react.calledLlmAt,
      calledLlmOrdinal: react.ordinal + 1,
      calls: null,
    },
  ];
}

/** A message that a hook adds after an answer does not start another model call: a hook has to request another step explicitly. */
function added(hook: HookName, messageId: string, timestamp: number, textOf: TextLookup): ReactStep[] {
  if (hook !== "afterLlm" && hook !== "onComplete") return [received(messageId, timestamp, textOf)];
  return [
    { type: "llm-message-started", messageId, timestamp },
    { type: "llm-message-completed", messageId, content: textOf(messageId), timestamp },
  ];
}

/** The ReAct core treats a final answer as the end of the loop; a hook that requests another step reverts that. */
function continued({ react, openCallIds }: TurnState, entry: EntryOf<"hook.applied">): ReactStep[] {
  if (entry.hook !== "afterLlm" || !entry.patch.continueRequested || openCallIds.length > 0) return [];
  return [{ type: "re-act-observed", timestamp: entry.at, calledLlmAt: react.calledLlmAt, calls: [] }];
}

function observed(turn: TurnState, entry: EntryOf<"model.responded">): ReactStep {
  const start = turn.openRequest;
  const goesOn = entry.calls.length > 0 || turn.execution.continuation.isContinuationRequested;
  const calls = entry.calls.filter(({ internal }) => !internal);
  return {
    type: "re-act-observed",
    timestamp: entry.at,
    calledLlmAt: start?.at ?? entry.at,
    ...(start ? { calledLlmOrdinal: start.ordinal } : {}),
    calls: goesOn
      ? calls.map(({ callId, name }) => [callId, { name, parameters: "", calledAt: entry.at }] as const)
      : null,
  };
}
