import type { Redactor } from "../../base/index.ts";
import {
  type AgentRequest,
  type Entry,
  type JournalRow,
  type Message,
  refusalReasonSchema,
  stopReasonSchema,
  withoutContents,
} from "../../state/index.ts";
import type { FeedEntry, FeedRow } from "./messages.ts";

/** Which stored values a reader may see. */
export interface Visibility {
  /** Show only names, ids and numbers: nothing that a person, a model or a tool wrote. */
  readonly namesOnly: boolean;
  readonly redactor: Redactor;
}

/** Fields of entries with contents, at any depth. Rows leave their values empty. */
const contents: ReadonlySet<string> = new Set([
  "arguments",
  "content",
  "description",
  "input",
  "issues",
  "parameters",
  "prefix",
  "structured",
  "text",
  "url",
  "value",
]);

/** Optional fields that rows leave out, because their schema accepts no empty value. */
const leftOut: ReadonlySet<string> = new Set(["epoch", "providerOptions", "reasoning", "sources", "trace"]);

/** Texts for people: rows keep them, redacted, unless only names are shown. */
const remarks: ReadonlySet<string> = new Set(["denied", "message", "note", "prompt", "reason"]);

/** Fields whose texts are names, ids or words from a fixed list. They are always shown. */
const names: ReadonlySet<string> = new Set([
  "accountId",
  "addedMessageIds",
  "agentId",
  "argumentsHash",
  "artifactId",
  "awaits",
  "callId",
  "callIds",
  "childId",
  "childIds",
  "childTurnId",
  "code",
  "contentType",
  "definition",
  "effect",
  "finishReason",
  "for",
  "hash",
  "hook",
  "id",
  "idempotencyKey",
  "inputMessageIds",
  "intent",
  "kept",
  "key",
  "kind",
  "kinship",
  "lifecycle",
  "limit",
  "messageId",
  "messageIds",
  "model",
  "name",
  "onEnd",
  "openIds",
  "outcome",
  "outputMessageId",
  "phase",
  "plugin",
  "promptHash",
  "provider",
  "providerId",
  "queue",
  "reasoningEffort",
  "removedMessageIds",
  "repairMessageId",
  "reports",
  "requestId",
  "requestIds",
  "role",
  "run",
  "scope",
  "stopReason",
  "strategy",
  "summaryMessageId",
  "through",
  "timerId",
  "to",
  "tool",
  "toolChoice",
  "turnId",
  "type",
  "verdict",
  "wokenBy",
]);

/** Limited, because a model may have written the name. */
const longestName = 200;
const longestRemark = 2_000;

/** A row as the feed sends it. */
export function feedRowOf({ cursor, agentId, entries }: JournalRow, sight: Visibility): FeedRow {
  return { cursor, agentId, entries: entries.map((entry) => feedEntryOf(entry, sight)) };
}

export function feedEntryOf(entry: Entry, sight: Visibility): FeedEntry {
  // A tool names its artifacts and may use a person's words.
  if (entry.type === "artifact.saved" && sight.namesOnly) return shown({ ...entry, name: "" }, sight) as FeedEntry;
  // A tool's code chooses the keys of its children.
  if (entry.type === "child.ordered") {
    const spawns = entry.spawns.map((spawn) => ({ ...spawn, key: "" }));
    return shown({ ...entry, spawns }, sight) as FeedEntry;
  }
  return shown(entry, sight) as FeedEntry;
}

function shown(fields: object, sight: Visibility): Record<string, unknown> {
  const left: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields) as [string, unknown][]) {
    if (value === undefined || leftOut.has(name)) continue;
    left[name] = contents.has(name) ? emptied(name, value) : shownValue(name, value, sight);
  }
  return left;
}

function emptied(name: string, value: unknown): unknown {
  if (name === "parameters") return {};
  return typeof value === "string" || (name === "content" && Array.isArray(value)) ? "" : null;
}

function shownValue(name: string, value: unknown, sight: Visibility): unknown {
  if (typeof value === "string") return shownText(name, value, sight);
  if (Array.isArray(value)) return value.map((item: unknown) => shownValue(name, item, sight));
  return typeof value === "object" && value !== null ? shown(value, sight) : value;
}

function shownText(name: string, text: string, { namesOnly, redactor }: Visibility): string {
  if (names.has(name)) return cut(text, longestName);
  if (isFixedReason(name, text)) return text;
  if (namesOnly) return "";
  return remarks.has(name) ? cut(redactor.text(text), longestRemark) : cut(text, longestName);
}

const fixedReasons: ReadonlySet<string> = new Set([...refusalReasonSchema.options, ...stopReasonSchema.options]);

function isFixedReason(name: string, text: string): boolean {
  return name === "reason" && fixedReasons.has(text);
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** A message for readers: redacted, or without its texts. */
export function shownMessage(message: Message, { namesOnly, redactor }: Visibility): Message {
  if (!namesOnly) return redactor.value(message) as Message;
  // A user's message names the person who sent it.
  if (message.role === "user")
    return { ...message, content: "", origin: isOurs(message.origin) ? message.origin : "user" };
  if (message.role !== "assistant") return { ...message, content: "" };
  const { reasoning: _hidden, sources: _cited, toolCalls, ...rest } = message;
  const calls = toolCalls && { toolCalls: toolCalls.map((call) => ({ ...call, arguments: "" })) };
  return { ...rest, ...calls, content: "" };
}

function isOurs(origin: string): boolean {
  return origin === "runtime" || origin === "model" || origin === "tool" || origin.startsWith("hook:");
}

/** A request for readers: redacted, or without its texts. */
export function shownRequest(request: AgentRequest, { namesOnly, redactor }: Visibility): AgentRequest {
  if (!namesOnly) {
    const decision = request.decision && withoutContents(request.decision);
    return redactor.value({ ...request, decision }) as AgentRequest;
  }
  const { decision, expiresAt, openedAt, decidedAt, status, kind, name, step, argumentsHash, isGuarded } = request;
  const { tenant, requestId, agentId, agentName, rootAgentId, turnId, callId } = request;
  // The fields are listed one by one, so that a new field stays hidden until it is added to the list.
  return {
    tenant,
    requestId,
    agentId,
    agentName,
    rootAgentId,
    turnId,
    callId,
    step,
    kind,
    name,
    argumentsHash,
    openedAt,
    expiresAt,
    decidedAt,
    status,
    ...(isGuarded === undefined ? {} : { isGuarded }),
    arguments: null,
    prompt: "",
    actorId: null,
    decision: decision && { verdict: decision.verdict, by: null, reason: null },
  };
}
