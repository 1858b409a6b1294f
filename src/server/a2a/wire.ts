import type { JsonObject, Json } from "../../state/index.ts";

/* JSON types of the protocol's answers. Empty fields are omitted. */

export type TaskState =
  | "TASK_STATE_SUBMITTED"
  | "TASK_STATE_WORKING"
  | "TASK_STATE_COMPLETED"
  | "TASK_STATE_FAILED"
  | "TASK_STATE_CANCELED"
  | "TASK_STATE_INPUT_REQUIRED"
  | "TASK_STATE_REJECTED"
  | "TASK_STATE_AUTH_REQUIRED";

const endStates: readonly TaskState[] = [
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
];

export function isEndState(state: TaskState): boolean {
  return endStates.includes(state);
}

export type WirePart = (
  | { readonly text: string }
  /** Base64. */
  | { readonly raw: string }
  | { readonly data: Json }
) & { readonly metadata?: JsonObject; readonly filename?: string; readonly mediaType?: string };

export interface WireMessage {
  readonly messageId: string;
  readonly contextId: string;
  readonly taskId: string;
  readonly role: "ROLE_USER" | "ROLE_AGENT";
  readonly parts: readonly WirePart[];
  readonly extensions?: readonly string[];
}

export interface WireStatus {
  readonly state: TaskState;
  readonly message?: WireMessage;
  /** ISO 8601, with milliseconds, in UTC. */
  readonly timestamp: string;
}

export interface WireArtifact {
  /** Unique within its task. */
  readonly artifactId: string;
  readonly name?: string;
  readonly parts: readonly WirePart[];
  readonly metadata?: JsonObject;
}

export interface WireTask {
  readonly id: string;
  readonly contextId: string;
  readonly status: WireStatus;
  readonly artifacts?: readonly WireArtifact[];
  readonly history?: readonly WireMessage[];
  readonly metadata?: JsonObject;
}

interface TaskIds {
  readonly taskId: string;
  readonly contextId: string;
}

/** One item of a stream. */
export type StreamItem =
  | { readonly task: WireTask }
  | { readonly statusUpdate: TaskIds & { readonly status: WireStatus; readonly metadata?: JsonObject } }
  | {
      readonly artifactUpdate: TaskIds & {
        readonly artifact: WireArtifact;
        readonly append: boolean;
        readonly lastChunk: boolean;
      };
    };
