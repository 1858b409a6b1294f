import type { Agent } from "../../runtime/index.ts";
import { type AgentRecord, type Content, type Json, type Message, textOf } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import type { AgUiMessage } from "./events.ts";
import { type Told, turnOfMessage } from "./run-input.ts";

interface Shown {
  readonly told: Told;
  /** The turn has ended: what nobody answered gets our ids, by which a later run knows that it has been said. */
  readonly isOver: boolean;
}

/**
 * The conversation of an agent as it is stored, in the form of a snapshot: what its subagents said comes after the call
 * that they were spawned by. What a subagent was told is left out, as in the stream. What the user said keeps the ids that
 * the client gave it, because a client moves a message whose id it does not know to the end.
 */
export async function storedMessages(
  { runtime }: Caller,
  { rootAgentId }: Pick<Agent, "rootAgentId">,
  shown: Shown,
): Promise<readonly AgUiMessage[]> {
  const { tenant } = runtime;
  const records = await runtime.list({ rootAgentId, limit: Number.MAX_SAFE_INTEGER });
  const byCall = Map.groupBy(
    records.filter(({ parentCallId }) => parentCallId !== null),
    ({ parentCallId }) => parentCallId,
  );
  const messagesOf = async (agentId: string): Promise<readonly AgUiMessage[]> => {
    const found: AgUiMessage[] = [];
    for (const message of await runtime.stores.messages({ tenant, agentId })) {
      const own = shownMessage(message, agentId === rootAgentId ? undefined : agentId);
      if (own === undefined) continue;
      found.push(own);
      if (own.role !== "assistant") continue;
      for (const { id } of own.toolCalls ?? []) found.push(...(await spokenBy(byCall.get(id) ?? [])));
    }
    return found;
  };
  const spokenBy = async (children: readonly AgentRecord[]): Promise<readonly AgUiMessage[]> =>
    (await Promise.all(children.map(({ agentId }) => messagesOf(agentId)))).flat();
  return withClientIds(await messagesOf(rootAgentId), shown);
}

function withClientIds(messages: readonly AgUiMessage[], { told, isOver }: Shown): readonly AgUiMessage[] {
  const found: AgUiMessage[] = [];
  const answered = new Set<string>();
  let waiting: AgUiMessage[] = [];
  for (const message of messages) {
    if (message.role === "user") {
      waiting.push(message);
      continue;
    }
    const turnId = turnOfMessage(message.id);
    const isFirst = message.role === "assistant" && message.subagentRunId === undefined && !answered.has(turnId);
    const now = told.get(turnId) ?? (isNewest(messages, turnId) ? told.get(null) : undefined) ?? [];
    found.push(...(isFirst && now.length > 0 ? now : waiting), message);
    if (isFirst) answered.add(turnId);
    waiting = [];
  }
  const unanswered = told.get(null) ?? [];
  return [...found, ...(isOver || waiting.length === 0 || unanswered.length === 0 ? waiting : unanswered)];
}

/** Whether the last answers are those of this turn: then it is the one that the client has no answer of yet. */
function isNewest(messages: readonly AgUiMessage[], turnId: string): boolean {
  const last = messages.findLast(({ role, subagentRunId }) => role === "assistant" && subagentRunId === undefined);
  return last !== undefined && turnOfMessage(last.id) === turnId;
}

function shownMessage(message: Message, subagentRunId: string | undefined): AgUiMessage | undefined {
  const { id, role, content } = message;
  const owner = subagentRunId === undefined ? {} : { subagentRunId };
  if (role === "system") return undefined;
  if (role === "user") return subagentRunId === undefined ? { id, role, content: userContent(content) } : undefined;
  const text = textOf(content);
  if (role === "tool") {
    const error = message.isError === true ? { error: text } : {};
    return { id, role, toolCallId: message.callId, content: text, ...error, ...owner };
  }
  const toolCalls = (message.toolCalls ?? []).map(
    ({ callId, name, arguments: args }) =>
      ({ id: callId, type: "function", function: { name, arguments: args } }) as const,
  );
  return {
    id,
    role,
    ...(text === "" ? {} : { content: text }),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    ...owner,
  };
}

function userContent(content: Content): Json {
  if (typeof content === "string") return content;
  return content.map((part): Json => {
    if (part.type === "text") return { type: "text", text: part.text };
    const [, mimeType, value] = /^data:([^;,]+);base64,(.*)$/s.exec(part.url) ?? [];
    return mimeType === undefined || value === undefined
      ? { type: "image", source: { type: "url", value: part.url } }
      : { type: "image", source: { type: "data", value, mimeType } };
  });
}
