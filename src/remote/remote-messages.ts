import type { Message, StreamResponse } from "@a2a-js/sdk";
import type { JsonObject } from "../state/index.ts";
import type { RunContext, ToolAnswer } from "../tools/index.ts";
import { messageIdOf } from "./call-contexts.ts";
import type { RemoteClient } from "./remote-client.ts";
import { isTaskLost, RemoteAgentError } from "./remote-error.ts";
import { DECISIONS, idsOf, type RemoteIds, type RemoteQuestion } from "./remote-task.ts";
import { nextEvent, type OpenStream } from "./remote-watch.ts";

/** How long a message in flight may take to tell its task's id when the turn has ended meanwhile, in milliseconds. */
const LINGER_MS = 4_000;

/** A signal that outlasts the end of the turn a little, until the first answer to a message has come. */
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

  /** The answer has come, or will not. */
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
  if (event === "silent") throw new RemoteAgentError("remote_unreachable", "nothing came for too long");
  if (event?.payload === undefined) throw new RemoteAgentError("remote_protocol", "it answered nothing");
  return { ids: idsOf(event), event };
}

/** Cancels a task. Resolves as well if the task has ended, or if the remote agent does not know it. */
export async function cancelTask(client: RemoteClient, taskId: string, signal: AbortSignal): Promise<void> {
  try {
    await client.cancel(taskId, signal);
  } catch (error) {
    const isOver = error instanceof RemoteAgentError && error.details["reason"] === "TASK_NOT_CANCELABLE";
    if (!isOver && !isTaskLost(error)) throw error;
  }
}

/** The message that passes a decision made here on to the task. */
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

/** A refused approval is an answer, which the remote agent takes; what else is refused leaves its task without a way on. */
export function isDenial({ kind, verdict }: ToolAnswer): boolean {
  return verdict === "expired" || (verdict === "rejected" && kind !== "approval");
}

export function textPart(value: string): Message["parts"][number] {
  return { content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" };
}

function dataPart(value: JsonObject): Message["parts"][number] {
  return { content: { $case: "data", value }, metadata: undefined, filename: "", mediaType: "" };
}
