import type { StreamResponse, Task } from "@a2a-js/sdk";
import { backoffDelay } from "../base/index.ts";
import type { JsonObject } from "../state/index.ts";
import type { RemoteClient } from "./remote-client.ts";
import { isPassing, RemoteAgentError } from "./remote-error.ts";
import { assertSame, idsOf, progressOf, type RemoteIds } from "./remote-task.ts";

/** Milliseconds without an event after which a stream counts as broken. */
const SILENCE_MS = 60_000;
/** Maximum wait between two reads of a task, in milliseconds. */
const LONGEST_WAIT_MS = 5_000;
/** After a stream of at least this duration, the next read follows soon. */
const GOOD_STREAM_MS = 5_000;

/** A streamed answer, which its reader must end. */
export interface OpenStream {
  readonly events: AsyncGenerator<StreamResponse, void, undefined>;
  stop(): void;
}

export interface Watching {
  readonly client: RemoteClient;
  readonly ids: RemoteIds;
  readonly signal: AbortSignal;
  /** Whether the task rests until a local decision. */
  readonly isRest: (task: Task) => boolean;
  readonly show: (update: JsonObject) => void;
}

/**
 * Watches a task until it rests, and returns it: through its stream while there is one, else by polling. Only the
 * polled task counts; a stream only indicates when to poll. Passing faults are waited out until the signal aborts.
 * Rejects with the signal's reason, and with `RemoteAgentError`.
 */
export async function watchTask(watching: Watching, begun?: OpenStream): Promise<Task> {
  const { client, ids, signal } = watching;
  let stream = begun;
  let looks = 0;
  for (;;) {
    const since = performance.now();
    if (stream) await drained(watching, stream);
    if (performance.now() - since > GOOD_STREAM_MS) looks = 0;
    const task = await taskNow(client, ids, signal);
    if (task && watching.isRest(task)) return task;
    looks += 1;
    await pause(looks, signal);
    stream = client.isStreaming ? streamOf((own) => client.subscribe(ids.taskId, own), signal) : undefined;
  }
}

/** The task in its current state; `undefined` while the remote agent is unavailable. */
export async function taskNow(client: RemoteClient, ids: RemoteIds, signal: AbortSignal): Promise<Task | undefined> {
  try {
    const task = await client.task(ids.taskId, signal);
    assertSame(ids, { taskId: task.id, contextId: task.contextId });
    return task;
  } catch (error) {
    if (signal.aborted || !isPassing(error)) throw error;
    return undefined;
  }
}

/** Waits before the n-th attempt, from 1. Rejects when the signal aborts. */
export async function pause(tries: number, signal: AbortSignal): Promise<void> {
  const ms = Math.min(LONGEST_WAIT_MS, backoffDelay(tries, Math.random()));
  await new Promise<void>((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** A stream that can be stopped while its next event is awaited. */
export function streamOf(
  open: (signal: AbortSignal) => AsyncGenerator<StreamResponse, void, undefined>,
  signal: AbortSignal,
): OpenStream {
  const own = new AbortController();
  return {
    events: open(AbortSignal.any([signal, own.signal])),
    stop: () => own.abort(new Error("the reader has stopped the stream")),
  };
}

/** The next event; `undefined` at the end. `silent`: none arrived in time. */
export async function nextEvent(
  { events }: OpenStream,
  mayBeSilent = false,
): Promise<StreamResponse | "silent" | undefined> {
  const next = events.next();
  // It rejects when the stream is stopped; by then it has no awaiting caller.
  next.catch(() => undefined);
  const { promise: silence, resolve } = Promise.withResolvers<"silent">();
  const timer = mayBeSilent ? undefined : setTimeout(() => resolve("silent"), SILENCE_MS);
  try {
    const result = await Promise.race([next, silence]);
    if (result === "silent") return result;
    return result.done === true ? undefined : result.value;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Reads a stream to its end and reports its events as progress. Also returns if the stream breaks or no longer exists.
 */
async function drained(watching: Watching, stream: OpenStream): Promise<void> {
  try {
    for (;;) {
      const event = await nextEvent(stream);
      if (event === undefined || event === "silent") return;
      takeEvent(watching, event);
    }
  } catch (error) {
    if (watching.signal.aborted || !mayGoOn(error)) throw error;
  } finally {
    stream.stop();
  }
}

/** Throws `RemoteAgentError` for an event of another task. */
export function takeEvent({ client, ids, show }: Watching, event: StreamResponse): void {
  const told = idsOf(event);
  if (told === undefined)
    throw new RemoteAgentError("remote_protocol", "the stream of a task contains a message outside the task");
  assertSame(ids, told);
  const update = progressOf(event, (task) => client.stateOf(task));
  if (update) show({ taskId: ids.taskId, ...update });
}

/** Whether polling can continue: a server refuses to stream an ended task. */
function mayGoOn(error: unknown): boolean {
  return isPassing(error) || (error instanceof RemoteAgentError && error.code === "remote_refused");
}
