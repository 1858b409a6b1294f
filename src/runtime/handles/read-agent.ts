import { type AgentDefinition, spawnLimitOf } from "../../agents/index.ts";
import { deepFreeze } from "../../base/index.ts";
import { NotFoundError } from "../../errors/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type AgentSettings,
  type AgentState,
  agentStateOf,
  declareCall,
  entriesOfTurn,
  type Entry,
  foldCall,
  isQueuedToSpawn,
  isResting,
  type Message,
  openCallsOf,
  promptOf,
  rootOf,
  type StubReport,
  stubReportOf,
  type TraceEntry,
  traceEntriesOf,
  type TurnState,
  textOf,
  turnOf,
} from "../../state/index.ts";
import { deletedError, type Stores } from "../../stores/index.ts";
import type { GetMessagesOptions } from "../api/agent-types.ts";

/** The committed entries of one turn in order, by default of the newest turn. */
async function readEntries(stores: Stores, key: AgentKey, turnId?: string): Promise<readonly Entry[]> {
  const rows = await stores.readJournal(key, 1);
  return entriesOfTurn(
    rows.flatMap(({ entries }) => entries),
    turnId,
  );
}

/** Trace of one turn, by default of the last one. */
export async function readTrace(stores: Stores, key: AgentKey, turnId?: string): Promise<TraceEntry[]> {
  const entries = await readEntries(stores, key, turnId);
  const messages = new Map((await stores.messages(key)).map((message) => [message.id, message]));
  const prompt = promptOf(entries, (id) => textOf(messages.get(id)?.content ?? ""));
  return traceEntriesOf(entries, prompt, (id) => messages.get(id));
}

/** The error for an agent that is not stored: `AgentDeletedError` if its tree was deleted, otherwise `NotFoundError`. */
export async function absentError(stores: Stores, { tenant, agentId }: AgentKey): Promise<Error> {
  const deletion = await stores.deletion(tenant, rootOf(agentId));
  return deletion ? deletedError(agentId, deletion) : new NotFoundError(`there is no agent "${agentId}"`);
}

/** How the stubs of a session were used, by all agents of its tree. */
export async function readStubReport(
  stores: Stores,
  { tenant, rootAgentId, stubs = [] }: Pick<AgentRecord, "tenant" | "rootAgentId" | "stubs">,
): Promise<StubReport> {
  const rows = stubs.length === 0 ? [] : await stores.readTree(tenant, rootAgentId, 0, Number.MAX_SAFE_INTEGER);
  return deepFreeze(stubReportOf(stubs, rows));
}

/** The committed state of the agent as one value. */
export async function readAgentState(
  stores: Stores,
  key: AgentKey,
  definition: AgentDefinition | undefined,
): Promise<AgentState> {
  const entries = await readEntries(stores, key);
  const messages = await stores.messages(key);
  const record = await stores.readAgent(key);
  if (!record) throw await absentError(stores, key);
  const turn = turnOf(entries);
  const settings = definition ? settingsOf(definition, entries) : undefined;
  const waits = turn !== undefined && isResting(turn, linesIn(turn, entries, definition));
  return agentStateOf(record, turn?.execution ?? null, messages, settings, waits);
}

/** Whether a call waits for a free slot, according to the entries. */
function linesIn(turn: TurnState, entries: readonly Entry[], definition: AgentDefinition | undefined) {
  const names = new Map(openCallsOf(turn).map(({ callId, name }) => [callId, name]));
  return (callId: string): boolean => {
    const name = names.get(callId) ?? "";
    const tool = definition?.tools.get(name);
    if (tool?.kind !== "subagent") return false;
    const call = entries
      .filter((entry) => "callId" in entry && entry.callId === callId)
      .reduce((folded, entry) => foldCall(folded, entry), declareCall(callId, name));
    return isQueuedToSpawn(call, entries, spawnLimitOf(tool));
  };
}

/** One turn, folded from its committed entries. */
export async function readTurn(stores: Stores, key: AgentKey, turnId: string): Promise<TurnState | undefined> {
  return turnOf(await readEntries(stores, key, turnId));
}

function settingsOf(definition: AgentDefinition, entries: readonly Entry[]): AgentSettings {
  const { model, temperature, maxOutputTokens, instructions, responseFormat = null } = definition;
  const resolved = entries.find((entry) => entry.type === "instructions.resolved");
  return {
    llmConfig: {
      provider: model.provider,
      model: model.name,
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    },
    systemPrompt: typeof instructions === "string" ? instructions : (resolved?.text ?? ""),
    responseFormat,
  };
}

/** The conversation, oldest first. */
export async function readMessages(stores: Stores, key: AgentKey, options: GetMessagesOptions): Promise<Message[]> {
  const { maxMessages, withoutTrace } = options;
  const messages = await stores.messages(key, withoutTrace ? {} : { maxMessages });
  if (!withoutTrace) return messages;
  const kept = messages.filter(({ metadata }) => !metadata?.is_trace);
  return maxMessages === undefined ? kept : kept.slice(-maxMessages);
}
