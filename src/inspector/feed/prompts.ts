import { NotFoundError } from "../../errors/index.ts";
import { definitionHashesOf, SentPrompts } from "../../context/index.ts";
import type { Prompt, PromptRow } from "./answers.ts";
import { type AgentJournal, journalOf, promptRowsOf } from "./agent-journal.ts";
import { agentKeyIn, type RunSource } from "./source.ts";
import { type Visibility, shownMessage } from "./visible-values.ts";

export async function promptRows(source: RunSource, agentId: string): Promise<PromptRow[]> {
  return promptRowsOf((await journalOf(source, agentId)).journal.entries);
}

/** One model call with its prompt and its answer. Throws `NotFoundError` if the agent has no such call. */
export async function promptOf(source: RunSource, agentId: string, seq: number, sight: Visibility): Promise<Prompt> {
  const of = await journalOf(source, agentId);
  const row = promptRowsOf(of.journal.entries).find((one) => one.seq === seq);
  const prompt = row && (await promptIn({ source, of, sent: await sentPrompts(source, of), sight }, row));
  if (!prompt) throw new NotFoundError(`agent "${agentId}" has no model call ${seq}`);
  return prompt;
}

/** All model calls of an agent whose prompts can be rebuilt. */
export async function allPrompts(source: RunSource, of: AgentJournal, sight: Visibility): Promise<Prompt[]> {
  const sent = await sentPrompts(source, of);
  const rows = promptRowsOf(of.journal.entries);
  const prompts = await Promise.all(rows.map((row) => promptIn({ source, of, sent, sight }, row)));
  return prompts.filter((prompt) => prompt !== undefined);
}

interface PromptContext {
  readonly source: RunSource;
  readonly of: AgentJournal;
  readonly sent: SentPrompts;
  readonly sight: Visibility;
}

async function promptIn(place: PromptContext, row: PromptRow): Promise<Prompt | undefined> {
  const { source, of, sight } = place;
  const sent = place.sent.prompt(row.seq);
  if (!sent) return undefined;
  const { answerId, error } = endOf(of, row);
  const key = agentKeyIn(source, of.record.agentId);
  const [answer] = answerId === null ? [] : await source.stores.messagesById(key, [answerId]);
  const { messages, tools = [], ...parameters } = sent.request;
  return {
    ...row,
    isExact: sent.check.isExact,
    why: sent.check.isExact ? null : sent.check.message,
    messages: messages.map((message) => shownMessage(message, sight)),
    tools: tools.map((tool) => (sight.namesOnly ? { name: tool.name, description: "", parameters: {} } : tool)),
    parameters: sight.namesOnly ? {} : (sight.redactor.value(parameters) as typeof parameters),
    answer: answer ? shownMessage(answer, sight) : null,
    error: error && sight.namesOnly ? { ...error, message: "" } : error,
  };
}

/** The model calls of an agent. Prompts are rebuilt on demand. */
export async function sentPrompts(source: RunSource, { record, journal }: AgentJournal): Promise<SentPrompts> {
  const { stores, tenant, runId } = source;
  const entries = journal.entries.map(({ entry }) => entry);
  const [messages, definitions] = await Promise.all([
    stores.messages(agentKeyIn(source, record.agentId)),
    Promise.all(definitionHashesOf(entries).map((hash) => stores.definition(tenant, runId, hash))),
  ]);
  const known = definitions.filter((definition) => definition !== undefined);
  return new SentPrompts({
    agent: record,
    entries,
    messages,
    definitions: new Map(known.map((definition) => [definition.hash, definition])),
  });
}

function endOf({ journal }: AgentJournal, { seq }: PromptRow): { answerId: string | null; error: Prompt["error"] } {
  for (const { entry } of journal.entries) {
    if (entry.seq <= seq) continue;
    if (entry.type === "model.responded") return { answerId: entry.messageId, error: null };
    if (entry.type === "model.failed") return { answerId: null, error: entry.error };
    if (entry.type === "model.requested") break;
  }
  return { answerId: null, error: null };
}
