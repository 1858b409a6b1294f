import type { Artifact, Message, Part, StreamResponse, Task } from "@a2a-js/sdk";
import { shortHash } from "../base/index.ts";
import type { Json, JsonObject } from "../state/index.ts";
import { RemoteAgentError } from "./remote-error.ts";
import type { RemoteUsage } from "./remote-options.ts";

/** The extension for deciding a task's requests one by one; approvals require it (docs/a2a.md). */
export const DECISIONS = "urn:troupe:a2a:decisions:v1";
/** The extension for repeated messages: they find the task that they started. */
export const MESSAGE_KEYS = "urn:troupe:a2a:message-keys:v1";

const endStates: ReadonlySet<string> = new Set([
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
]);
const waitingStates: ReadonlySet<string> = new Set(["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"]);

export function isEnded(state: string): boolean {
  return endStates.has(state);
}

/** Whether the task waits for a decision or credentials from the caller. */
export function isWaiting(state: string): boolean {
  return waitingStates.has(state);
}

/** The ids of a task; the context is empty if the server does not report it. */
export interface RemoteIds {
  readonly taskId: string;
  readonly contextId: string;
}

const LONGEST_ID = 1_000;

/**
 * The task of an event; `undefined` for a message outside any task. Throws `RemoteAgentError` for a task without an id.
 */
export function idsOf({ payload }: StreamResponse): RemoteIds | undefined {
  if (payload?.$case === undefined || payload.$case === "message") return undefined;
  const { value } = payload;
  const taskId = payload.$case === "task" ? payload.value.id : (value as { readonly taskId: string }).taskId;
  if (taskId === "" || taskId.length > LONGEST_ID || value.contextId.length > LONGEST_ID) {
    throw new RemoteAgentError("remote_protocol", "the remote agent returned no valid task id");
  }
  return { taskId, contextId: value.contextId };
}

/** Throws `RemoteAgentError` if the ids belong to another task than the started one. */
export function assertSame(known: RemoteIds, told: RemoteIds): void {
  const isSame = told.taskId === known.taskId && (told.contextId === known.contextId || told.contextId === "");
  if (isSame) return;
  throw new RemoteAgentError("remote_protocol", "the answer belongs to another task or another context");
}

/** The progress update for an event: the state, or a text delta. `undefined` if there is none. */
export function progressOf(
  event: StreamResponse,
  stateOf: (task: Pick<Task, "status">) => string,
): JsonObject | undefined {
  const { payload } = event;
  if (payload?.$case === "artifactUpdate") {
    const { append, artifact } = payload.value;
    const text = shown(partsText(artifact?.parts ?? []));
    return text === "" ? undefined : { text, append };
  }
  if (payload?.$case !== "task" && payload?.$case !== "statusUpdate") return undefined;
  const text = shown(partsText(payload.value.status?.message?.parts ?? []));
  const state = stateOf(payload.value);
  return text === "" ? { state } : { state, message: text };
}

/** Maximum length of the text in one progress update, in UTF-16 units. */
const LONGEST_PIECE = 64_000;

function shown(text: string): string {
  return text.slice(0, LONGEST_PIECE).toWellFormed();
}

export function partsText(parts: readonly Part[]): string {
  return parts.flatMap(({ content }) => (content?.$case === "text" ? [content.value] : [])).join("");
}

/** A file of a task. */
export interface RemoteFile {
  /** Unique within its task. */
  readonly key: string;
  readonly name: string;
  readonly contentType: string;
  /** A text, or bytes. */
  readonly content: string | Uint8Array;
}

/** The output of a task or a message, in order: texts for the model, and files to save. */
export type RemotePiece = { readonly text: string } | { readonly file: RemoteFile };

/** The artifacts of a task; without any, its last message. */
export function piecesOfTask({ artifacts, status, history }: Task): readonly RemotePiece[] {
  const pieces = artifacts.flatMap((artifact) => piecesOf(artifact, artifact.artifactId, artifact.name));
  if (pieces.length > 0) return pieces;
  const last = status?.message ?? history.at(-1);
  return last ? piecesOfMessage(last) : [];
}

export function piecesOfMessage(message: Message): readonly RemotePiece[] {
  return piecesOf(message, message.messageId, "file");
}

function piecesOf({ parts }: Pick<Artifact, "parts">, id: string, name: string): readonly RemotePiece[] {
  const texts = parts.flatMap(({ content }) => (content?.$case === "text" ? [normalJson(content.value)] : []));
  return parts.flatMap((part, index): RemotePiece[] => {
    const { content, filename } = part;
    const mediaType = part.mediaType === "" ? "application/octet-stream" : part.mediaType;
    switch (content?.$case) {
      case "text":
        return content.value === "" ? [] : [{ text: content.value.toWellFormed() }];
      case "data": {
        const text = JSON.stringify(content.value ?? null).toWellFormed();
        // Some agents repeat their data as text.
        return texts.includes(text) ? [] : [{ text }];
      }
      case "url":
        return [{ text: `[a file at ${content.value.slice(0, 2_000).toWellFormed()}, ${mediaType}]` }];
      case "raw": {
        const label = (filename === "" ? name : filename) || "file";
        const file = { key: `${id}/${index}`, name: label.slice(0, 200).toWellFormed() };
        return [
          { file: { ...file, ...fileContent(Buffer.from(content.value), mediaType.slice(0, 200).toWellFormed()) } },
        ];
      }
      default:
        return [];
    }
  });
}

function normalJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}

/** Bytes of a text type that are valid text become one. */
function fileContent(bytes: Buffer, mediaType: string): Pick<RemoteFile, "content" | "contentType"> {
  const isText = /^(?:text\/|application\/(?:json|xml|yaml|[\w.-]+\+(?:json|xml)))/i.test(mediaType);
  const text = isText ? bytes.toString("utf8") : "";
  if (isText && Buffer.from(text).equals(bytes)) return { content: text, contentType: mediaType };
  return { content: bytes, contentType: mediaType };
}

/** A question of a waiting task. */
export interface RemoteQuestion {
  /** Equal for equal questions. */
  readonly key: string;
  readonly kind: "question" | "approval" | "auth";
  readonly prompt: string;
  /** Details for programs that show or decide the question. */
  readonly about: Json;
  /** The request's id, if the server supports deciding requests one by one; else `null`. */
  readonly request: { readonly requestId: string; readonly argumentsHash: string | null } | null;
}

/** The first question of a waiting task. */
export function questionOf(task: Task, state: string): RemoteQuestion {
  const message = task.status?.message;
  const parts = message?.parts ?? [];
  const part = parts.find(({ metadata }) => typeof metadata?.["requestId"] === "string");
  const { requestId, kind, argumentsHash } = part?.metadata ?? {};
  const said = part ? partsText([part]) : partsText(parts);
  const prompt = (said.trim() || "(the remote agent did not describe its request)")
    .slice(0, LONGEST_PROMPT)
    .toWellFormed();
  const data = parts.flatMap(({ content }) => (content?.$case === "data" ? [content.value as Json] : []));
  return {
    key: shortHash(JSON.stringify([state, message?.messageId ?? "", requestId ?? "", prompt])),
    kind: kindOf(state, kind),
    prompt,
    about: { taskId: task.id, ...(part ? aboutOf(part) : {}), ...(data.length > 0 ? { data } : {}) },
    request:
      typeof requestId === "string"
        ? { requestId, argumentsHash: typeof argumentsHash === "string" ? argumentsHash : null }
        : null,
  };
}

const LONGEST_PROMPT = 8_000;

/** The call that an approval is for, as the remote agent reports it. */
function aboutOf({ metadata }: Part): JsonObject {
  const { name, arguments: args } = metadata ?? {};
  return typeof name === "string" ? { name, arguments: (args ?? null) as Json } : {};
}

/** Without a reported kind, a task that requires authority needs credentials. */
function kindOf(state: string, told: unknown): RemoteQuestion["kind"] {
  if (state === "TASK_STATE_INPUT_REQUIRED") return "question";
  return told === "approval" ? "approval" : "auth";
}

/**
 * The usage in an ended task's metadata, as this package's servers report it; other servers report none, or elsewhere.
 */
export function usageOf({ metadata }: Pick<Task, "metadata">): RemoteUsage | undefined {
  const told: unknown = metadata?.["usage"];
  if (typeof told !== "object" || told === null) return undefined;
  const { inputTokens, outputTokens, cost } = told as Readonly<Record<string, unknown>>;
  if (!isTokens(inputTokens) || !isTokens(outputTokens)) return undefined;
  const isCost = typeof cost === "number" && cost >= 0 && cost <= MOST_DOLLARS;
  return { inputTokens, outputTokens, ...(isCost ? { cost } : {}) };
}

/** Upper bound for reported tokens: larger numbers are implausible and ignored. */
const MOST_TOKENS = 1_000_000_000;
const MOST_DOLLARS = 1_000_000;

function isTokens(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= MOST_TOKENS;
}
