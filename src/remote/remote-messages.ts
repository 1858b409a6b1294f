import type { Message, StreamResponse } from "@a2a-js/sdk";
import type { JsonObject } from "../state/index.ts";
import type { RunContext, ToolAnswer } from "../tools/index.ts";
import { messageIdOf } from "./call-contexts.ts";
import type { RemoteClient } from "./remote-client.ts";
import { isTaskLost, RemoteAgentError } from "./remote-error.ts";
import { DECISIONS, idsOf, type RemoteIds, type RemoteQuestion } from "./remote-task.ts";
import { nextEvent, type OpenStream } from "./remote-watch.ts";

/** Maximum wait for the task's id of a message in flight after the turn has ended, in milliseconds. */
const LINGER_MS = 4_000;

/** A signal that aborts slightly after the end of the turn, to allow the first answer to a message to arrive. */
export class Lingering {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #ending: AbortSignal;
  readonly #onEnd: () => void;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(ending: AbortSignal, late: AbortSignal) {
    this.#ending = ending;
    this.signal = AbortSignal.any([late, this.#controller.signal]);
    this.#onEnd = () => {
      if (this.#isOver) this.#stop();
      else this.#timer = setTimeout(() => this.#stop(), LINGER_MS);
    };
    if (ending.aborted) this.#onEnd();
    else ending.addEventListener("abort", this.#onEnd, { once: true });
  }

  /** Must be called when the answer has come, or will not come. */
  isOver(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    if (this.#ending.aborted) this.#stop();
  }

  #stop(): void {
    this.#controller.abort(this.#ending.reason);
  }
}

/** `mayTakeLong`: the answer is not streamed, and some servers send it only when the task has ended. */
export async function firstOf(
  stream: OpenStream,
  mayTakeLong: boolean,
): Promise<{ readonly ids: RemoteIds | undefined; readonly event: StreamResponse }> {
  const event = await nextEvent(stream, mayTakeLong);
  if (event === "silent") throw new RemoteAgentError("remote_unreachable", "no answer arrived in time");
  if (event?.payload === undefined) throw new RemoteAgentError("remote_protocol", "the answer is empty");
  return { ids: idsOf(event), event };
}

/** Cancels a task. Also resolves if the task has ended, or no longer exists at the remote agent. */
export async function cancelTask(client: RemoteClient, taskId: string, signal: AbortSignal): Promise<void> {
  try {
    await client.cancel(taskId, signal);
  } catch (error) {
    const isOver = error instanceof RemoteAgentError && error.details["reason"] === "TASK_NOT_CANCELABLE";
    if (!isOver && !isTaskLost(error)) throw error;
  }
}

/** The message that forwards a local decision to the task. */
export function answerOf(
  run: RunContext,
  { requestId, verdict, text, reason }: ToolAnswer,
  request: RemoteQuestion["request"],
  isStructured: boolean,
): Pick<Message, "messageId" | "parts" | "extensions"> {
  const messageId = messageIdOf(run, requestId);
  if (request !== null && isStructured) {
    const said = verdict === "answered" ? { result: text } : reason === null ? {} : { reason };
    const { argumentsHash } = request;
    const about = { requestId: request.requestId, ...(argumentsHash === null ? {} : { argumentsHash }) };
    return { messageId, parts: [dataPart({ ...about, verdict, ...said })], extensions: [DECISIONS] };
  }
  const words = verdict === "approved" ? "Approved." : `Rejected${reason === null ? "." : `: ${reason}`}`;
  return { messageId, parts: [textPart(verdict === "answered" ? text : words)], extensions: [] };
}

/**
 * Whether the task is cancelled because of a refusal. A refused approval is sent as an answer; other refusals leave the
 * task without one.
 */
export function isDenial({ kind, verdict }: ToolAnswer): boolean {
  return verdict === "expired" || (verdict === "rejected" && kind !== "approval");
}

export function textPart(value: string): Message["parts"][number] {
  return { content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" };
}

function dataPart(value: JsonObject): Message["parts"][number] {
  return { content: { $case: "data", value }, metadata: undefined, filename: "", mediaType: "" };
}
