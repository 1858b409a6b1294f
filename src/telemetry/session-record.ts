import { createRedactor, flagRule, optionsOf, reading, type Redactor, textRule } from "../base/index.ts";
import { NotFoundError } from "../errors/index.ts";
import { rootOf } from "../state/index.ts";
import { redactorRule } from "./listen.ts";
import { eventsInJournal, type JournalSource } from "./read-events.ts";
import { SessionFold, type SessionRecord, type SessionTurn } from "./session-fold.ts";
import { messagesOfTurn } from "./session-messages.ts";

export interface SessionRecordOptions {
  /** Each turn with the messages that it added. Default false. */
  readonly messages?: boolean | undefined;
  /** Default: `createRedactor()`, which knows the secrets of the environment. */
  readonly redactor?: Redactor | undefined;
}

/**
 * The record of an agent from its journal: the same that `yamlSession` writes while it runs. Works for agents that ended
 * long ago, and for subagents. Throws `NotFoundError` for one that never had a turn.
 */
export async function sessionRecord(
  source: JournalSource,
  agentId: string,
  given?: SessionRecordOptions,
): Promise<SessionRecord> {
  reading("sessionRecord()", () => textRule(agentId, "sessionRecord(): the agent's id"));
  const options = optionsOf<SessionRecordOptions>(given, "sessionRecord()", {
    rules: { messages: flagRule, redactor: redactorRule },
    instead: { content: "messages" },
  });
  const fold = new SessionFold(agentId);
  for await (const event of eventsInJournal(source, rootOf(agentId))) fold.note(event);
  const { record } = fold;
  if (!record) throw new NotFoundError(`agent "${agentId}" has had no turn`);
  const turns = options.messages === true ? await withMessages(source, agentId, record.turns) : record.turns;
  const { redactor = createRedactor() } = options;
  return redactor.value({ ...record, turns }) as SessionRecord;
}

/** The turns with their messages. */
export async function withMessages(
  { stores, tenant }: JournalSource,
  agentId: string,
  turns: readonly SessionTurn[],
): Promise<SessionTurn[]> {
  const messages = await stores.messages({ tenant, agentId });
  return turns.map((turn) => ({ ...turn, messages: messagesOfTurn(messages, turn.turn_id) }));
}
