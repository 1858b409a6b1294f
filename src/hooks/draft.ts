import { InvalidInputError } from "../errors/index.ts";
import type { Content, HookPatch, Message } from "../state/index.ts";

/** A message that a hook adds. It enters history with origin `hook:<plugin>`. */
export interface AddedMessage {
  readonly role: "user" | "system" | "assistant";
  readonly content: Content;
}

/** What every hook may do that is allowed to add messages (row H2). Changes are committed when the hook returns. */
export interface MessageDraft {
  readonly messages: readonly Message[];
  /** Appends a message to the conversation. */
  add(message: AddedMessage): void;
  /** Stops the turn with stop reason `stop_requested` at the end of this step (row S11). */
  stop(reason: string): void;
}

/** `beforeLlm`: edits and removals hold for the one model call that follows; history keeps everything. */
export interface BeforeLlmDraft extends MessageDraft {
  edit(messageId: string, content: Content): void;
  remove(messageId: string): void;
}

/** `afterTools`: all results of the round are in, so messages may follow them. */
export interface AfterToolsDraft extends MessageDraft {
  /** Asks for another step even where the turn would stop (row S5). */
  continue(): void;
}

/** What came of a draft: the patch without ids of added messages, and those messages. */
export interface DraftOutcome {
  readonly added: readonly AddedMessage[];
  readonly patch: Omit<HookPatch, "addedMessageIds">;
}

/** A draft over the messages that the hook sees, and the way to read off what it changed. */
export function createDraft(messages: readonly Message[]): {
  readonly draft: BeforeLlmDraft & AfterToolsDraft;
  readonly outcome: () => DraftOutcome;
} {
  const added: AddedMessage[] = [];
  const edited = new Map<string, Content>();
  const removed = new Set<string>();
  let stop: HookPatch["stop"] = null;
  let continueRequested = false;
  let closed = false;
  const known = (messageId: string): void => {
    if (closed)
      throw new InvalidInputError("this draft was committed when its hook returned; it takes no more changes");
    if (messages.some(({ id }) => id === messageId)) return;
    throw new InvalidInputError(`the draft has no message "${messageId}"; take ids from draft.messages`);
  };
  const open = (): void => known(messages[0]?.id ?? "");
  return {
    draft: {
      messages,
      add(message) {
        if (messages.length > 0) open();
        added.push({ role: message.role, content: message.content });
      },
      edit(messageId, content) {
        known(messageId);
        edited.set(messageId, content);
      },
      remove(messageId) {
        known(messageId);
        removed.add(messageId);
      },
      stop(reason) {
        stop = { reason: "stop_requested", message: reason };
      },
      continue() {
        continueRequested = true;
      },
    },
    outcome() {
      closed = true;
      return {
        added,
        patch: {
          edited: [...edited].map(([messageId, content]) => ({ messageId, content })),
          removedMessageIds: [...removed],
          stop,
          continueRequested,
        },
      };
    },
  };
}
