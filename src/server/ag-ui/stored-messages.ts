import type { Agent } from "../../runtime/index.ts";
import {
  type AgentRecord,
  type Content,
  dataOf,
  meantCall,
  fileMark,
  type FilePart,
  type Json,
  type Message,
  textOf,
} from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import type { AgUiMessage } from "./events.ts";
import { type Told, turnOfMessage } from "./run-input.ts";

/** The client's ids and new input, for a snapshot. */
export interface Names {
  readonly told: Told;
  /** The turn that the run follows, or `null` if it follows none. */
  readonly turnId: string | null;
  /** The new input, or `null`. */
  readonly said: Content | null;
  /**
   * Whether new input keeps the client's ids. False if the client lacks earlier messages: a client moves a message with
   * an unknown id to the end, and new input belongs after it.
   */
  readonly keepsSaid: boolean;
  /** The turn has ended: unanswered messages get our ids, so that a later run recognizes them. */
  readonly isOver: boolean;
}

/**
 * The stored conversation of an agent as a snapshot. The messages of a subagent follow the call that spawned it and its result. The
 * input of a subagent is left out, as in the stream. `of`: only these subagents.
 */
export async function storedMessages(
  { runtime }: Caller,
  { rootAgentId }: Pick<Agent, "rootAgentId">,
  names: Names,
  of?: ReadonlySet<string>,
): Promise<readonly AgUiMessage[]> {
  const { tenant } = runtime;
  const listed = of?.size === 0 ? [] : await runtime.list({ rootAgentId, limit: Number.MAX_SAFE_INTEGER });
  const spawned = Map.groupBy(
    listed.filter(({ agentId }) => agentId !== rootAgentId && (of?.has(agentId) ?? true)),
    // A subagent that a tool's code spawned follows the answer with the tool call.
    ({ parentCallId, parentTurnId, parentStep }) => parentCallId ?? `${parentTurnId}:${parentStep}`,
  );
  const withSubagents = async (messages: readonly AgUiMessage[]): Promise<readonly AgUiMessage[]> => {
    const found: AgUiMessage[] = [];
    // A client puts results directly behind the answer with their calls, before what the subagents have said.
    const below: AgUiMessage[] = [];
    for (const message of messages) {
      if (message.role !== "tool") found.push(...below.splice(0));
      found.push(message);
      if (message.role !== "assistant") continue;
      const places = [message.id, ...(message.toolCalls ?? []).map(({ id }) => id)];
      for (const place of places) below.push(...(await spokenBy(spawned.get(place) ?? [])));
    }
    return [...found, ...below];
  };
  const spokenBy = async (children: readonly AgentRecord[]): Promise<readonly AgUiMessage[]> => {
    const found = children.map(async ({ agentId }) => {
      const stored = await runtime.stores.messages({ tenant, agentId });
      // What a subagent was given of the conversation (`history`) is shown where it was said.
      const spoken = shownMessages(
        stored.filter(({ id }) => !id.startsWith("seed:")),
        agentId,
      );
      return await withSubagents(withClientResults(spoken, names).filter(({ role }) => role !== "user"));
    });
    return (await Promise.all(found)).flat();
  };
  const own = await runtime.stores.messages({ tenant, agentId: rootAgentId });
  return await withSubagents(withClientNames(shownMessages(own), names));
}

/** The messages of one agent that clients see. */
export function shownMessages(messages: readonly Message[], subagentRunId?: string): readonly AgUiMessage[] {
  return messages.flatMap((message) => shownMessage(message, subagentRunId) ?? []);
}

/** Restores the client's ids and form of its inputs, instructions and results. */
export function withClientNames(messages: readonly AgUiMessage[], names: Names): readonly AgUiMessage[] {
  const { told, turnId: followed, keepsSaid, isOver } = names;
  const ids = new Set(messages.map(({ id }) => id));
  const answered = new Set(messages.flatMap(({ id, role }) => (role === "assistant" ? turnOfMessage(id) : [])));
  const toldIn = (turnId: string): readonly AgUiMessage[] => {
    const isLast = turnId === followed && keepsSaid && (answered.has(turnId) || !isOver);
    const said = told.before.get(turnId) ?? (isLast ? told.last : []);
    return said.filter(({ id }) => id === inputIdOf(turnId) || !ids.has(id));
  };
  const found: AgUiMessage[] = [];
  const inputs = new Set<string>();
  const begun = new Set<string>();
  const begin = (turnId: string): void => {
    begun.add(turnId);
    const said = toldIn(turnId);
    found.push(...said);
    if (said.some(({ role }) => role === "user")) inputs.add(inputIdOf(turnId));
  };
  for (const message of withClientResults(messages, names)) {
    const turnId = turnOfMessage(message.role === "tool" ? message.toolCallId : message.id);
    if (!begun.has(turnId)) begin(turnId);
    if (!inputs.has(message.id)) found.push(told.steered.get(message.id) ?? message);
  }
  // The turn was accepted, but its input is not stored yet.
  if (followed !== null && !begun.has(followed) && !isOver)
    found.push(...(keepsSaid ? toldIn(followed) : inputOf(names)));
  // An input for a running turn is stored with the model call that sees it.
  const waiting = isOver ? [] : [...told.steered].filter(([id]) => turnOfMessage(id) === followed && !ids.has(id));
  found.push(...waiting.map(([, message]) => message));
  return withInstructions(found, told);
}

/** Restores the client's ids of results, and adds those that are not stored yet. */
function withClientResults(
  messages: readonly AgUiMessage[],
  { told: { results }, isOver }: Names,
): readonly AgUiMessage[] {
  const settled = new Set(messages.flatMap((message) => (message.role === "tool" ? message.toolCallId : [])));
  return messages.flatMap((message): readonly AgUiMessage[] => {
    if (message.role === "tool") return [{ ...message, id: results.get(message.toolCallId)?.id ?? message.id }];
    const calls = message.role === "assistant" && !isOver ? (message.toolCalls ?? []) : [];
    const owner = message.subagentRunId === undefined ? {} : { subagentRunId: message.subagentRunId };
    const sent = calls.flatMap(({ id }) => (settled.has(id) ? [] : (results.get(id) ?? [])));
    return [message, ...sent.map((result) => ({ ...result, ...owner }))];
  });
}

function inputOf({ said, turnId }: Names): readonly AgUiMessage[] {
  return said === null || turnId === null ? [] : [{ id: inputIdOf(turnId), role: "user", content: userContent(said) }];
}

/** Adds instructions after the last answer: a client drops messages that are missing in a snapshot. */
function withInstructions(messages: readonly AgUiMessage[], { last }: Told): readonly AgUiMessage[] {
  const ids = new Set(messages.map(({ id }) => id));
  return [...last.filter(({ id, role }) => role !== "user" && !ids.has(id)), ...messages];
}

function inputIdOf(turnId: string): string {
  return `${turnId}:in`;
}

function shownMessage(message: Message, subagentRunId: string | undefined): AgUiMessage | undefined {
  const { id, role, content, origin } = message;
  const owner = subagentRunId === undefined ? {} : { subagentRunId };
  // Additions of hooks are only for the model, and so are a step's own user messages, such as summaries and reports.
  if (role === "system" || (role === "assistant" && origin.startsWith("hook:"))) return undefined;
  if (role === "user") return message.metadata === undefined ? { id, role, content: userContent(content) } : undefined;
  const text = textOf(content);
  if (role === "tool") {
    const error = message.isError === true ? { error: text } : {};
    return { id, role, toolCallId: message.callId, content: text, ...error, ...owner };
  }
  const toolCalls = (message.toolCalls ?? [])
    .map(meantCall)
    .map(
      ({ callId, name, arguments: args }) =>
        ({ id: callId, type: "function", function: { name, arguments: args } }) as const,
    );
  if (text === "" && toolCalls.length === 0) return undefined;
  return {
    id,
    role,
    ...(text === "" ? {} : { content: text }),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    ...owner,
  };
}

/** The content of a user's message. */
export function userContent(content: Content): Json {
  if (typeof content === "string") return content;
  return content.map((part): Json => {
    if (part.type === "text") return { type: "text", text: part.text };
    if (part.type === "file") return filePart(part);
    const [, mimeType, value] = /^data:([^;,]+);base64,(.*)$/s.exec(part.url) ?? [];
    return mimeType === undefined || value === undefined
      ? { type: "image", source: { type: "url", value: part.url } }
      : { type: "image", source: { type: "data", value, mimeType } };
  });
}

const sourceTypes = ["audio", "video"] as const;

/** A file with its content, or its mark if that is elsewhere. */
function filePart(part: FilePart): Json {
  const { mediaType, url } = part;
  if (url === undefined) return { type: "text", text: fileMark(part) };
  const type = sourceTypes.find((one) => mediaType.startsWith(`${one}/`)) ?? "document";
  const value = dataOf(url);
  return value === undefined
    ? { type, source: { type: "url", value: url, mimeType: mediaType } }
    : { type, source: { type: "data", value, mimeType: mediaType } };
}
