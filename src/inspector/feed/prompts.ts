import { NotFoundError } from "../../errors/index.ts";
import type { Prompt, PromptRow } from "./answers.ts";
import { type AgentJournal, journalOf, messageIdsOf, promptRowsOf } from "./agent-journal.ts";
import { keyOf, type RunSource } from "./source.ts";
import { type Sight, shownMessage } from "./visible-values.ts";

export async function promptRows(source: RunSource, agentId: string): Promise<PromptRow[]> {
  return promptRowsOf((await journalOf(source, agentId)).entries);
}

/** One model call with its prompt and its answer. Throws `NotFoundError` where the agent has no call of that number. */
export async function promptOf(source: RunSource, agentId: string, seq: number, sight: Sight): Promise<Prompt> {
  const journal = await journalOf(source, agentId);
  const row = promptRowsOf(journal.entries).find((one) => one.seq === seq);
  if (!row) throw new NotFoundError(`agent "${agentId}" has no model call ${seq}`);
  const { answerId, error } = endOf(journal, row);
  const key = keyOf(source, agentId);
  const all = await source.stores.messages(key);
  const known = new Set(journal.entries.flatMap(({ entry }) => (entry.seq < seq ? messageIdsOf(entry) : [])));
  const [answer] = answerId === null ? [] : await source.stores.messagesById(key, [answerId]);
  return {
    ...row,
    isExact: false,
    why: "the definition that the agent ran with is not stored",
    messages: all.filter(({ id }) => known.has(id)).map((message) => shownMessage(message, sight)),
    tools: null,
    parameters: {},
    answer: answer ? shownMessage(answer, sight) : null,
    error: error && sight.namesOnly ? { ...error, message: "" } : error,
  };
}

function endOf({ entries }: AgentJournal, { seq }: PromptRow): { answerId: string | null; error: Prompt["error"] } {
  for (const { entry } of entries) {
    if (entry.seq <= seq) continue;
    if (entry.type === "model.responded") return { answerId: entry.messageId, error: null };
    if (entry.type === "model.failed") return { answerId: null, error: entry.error };
    if (entry.type === "model.requested") break;
  }
  return { answerId: null, error: null };
}
