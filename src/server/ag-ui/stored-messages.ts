import type { Agent } from "../../runtime/index.ts";
import { type AgentRecord, type Content, type Message, textOf } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import type { AgUiMessage, MessagePart } from "./events.ts";

/**
 * The conversation of an agent as it is stored, in the form of a snapshot: what its subagents said comes after the call
 * that they were spawned by. What a subagent was told is left out, as in the stream.
 */
export async function storedMessages({ runtime }: Caller, agent: Agent): Promise<readonly AgUiMessage[]> {
  const { rootAgentId, tenant } = { rootAgentId: agent.rootAgentId, tenant: runtime.tenant };
  const records = await runtime.list({ rootAgentId, limit: Number.MAX_SAFE_INTEGER });
  const byCall = Map.groupBy(
    records.filter(({ parentCallId }) => parentCallId !== null),
    ({ parentCallId }) => parentCallId,
  );
  const messagesOf = async (agentId: string): Promise<readonly AgUiMessage[]> => {
    const shown: AgUiMessage[] = [];
    for (const message of await runtime.stores.messages({ tenant, agentId })) {
      const own = shownMessage(message, agentId === rootAgentId ? undefined : agentId);
      if (own === undefined) continue;
      shown.push(own);
      if (own.role !== "assistant") continue;
      for (const { id } of own.toolCalls ?? []) shown.push(...(await spokenBy(byCall.get(id) ?? [])));
    }
    return shown;
  };
  const spokenBy = async (children: readonly AgentRecord[]): Promise<readonly AgUiMessage[]> =>
    (await Promise.all(children.map(({ agentId }) => messagesOf(agentId)))).flat();
  return await messagesOf(rootAgentId);
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

function userContent(content: Content): string | readonly MessagePart[] {
  if (typeof content === "string") return content;
  return content.map((part): MessagePart => {
    if (part.type === "text") return part;
    const [, mimeType, value] = /^data:([^;,]+);base64,(.*)$/s.exec(part.url) ?? [];
    return mimeType === undefined || value === undefined
      ? { type: "image", source: { type: "url", value: part.url } }
      : { type: "image", source: { type: "data", value, mimeType } };
  });
}
