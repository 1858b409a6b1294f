import type { StreamResponse, Task } from "@a2a-js/sdk";
import { backoffDelay } from "../base/index.ts";
import type { JsonObject } from "../state/index.ts";
import type { RemoteClient } from "./remote-client.ts";
import { isPassing, RemoteAgentError } from "./remote-error.ts";
import { assertSame, idsOf, progressOf, type RemoteIds } from "./remote-task.ts";

/** A stream without an event for so many milliseconds is taken for broken. */
const SILENCE_MS = 60_000;
/** Longest wait between two looks at a task, in milliseconds. */
const LONGEST_WAIT_MS = 5_000;
/** A stream that lasted so long was a good one: the next look comes soon. */
const GOOD_STREAM_MS = 5_000;

/** An answer in pieces, which its reader ends. */
export interface OpenStream {
  readonly events: AsyncGenerator<StreamResponse, void, undefined>;
  stop(): void;
}

export interface Watching {
  readonly client: RemoteClient;
  readonly ids: RemoteIds;
  readonly signal: AbortSignal;
  /** Whether the task does nothing more until a decision from here. */
  readonly isRest: (task: Task) => boolean;
  readonly show: (update: JsonObject) => void;
}

/**
 * Watches a task until it rests, and gives it as it then is: by its stream while there is one, else by asking again and again.
 * The task that was asked for is what counts; a stream only tells that it is worth asking. Passing faults are waited out: the
 * signal ends the wait. Rejects with its reason, and with `RemoteAgentError`.
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

/** The task as it is now; undefined while it cannot be asked for. */
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

/** Waits before the n-th try, from 1; the signal ends the wait, and rejects. */
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

/** The next event; undefined at the end. `silent`: none has come for too long. */
export async function nextEvent(
  { events }: OpenStream,
  mayBeSilent = false,
): Promise<StreamResponse | "silent" | undefined> {
  const next = events.next();
  // It rejects when the stream is stopped; by then no caller awaits it.
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

/** Reads a stream to its end and shows its events. Returns as usual if the stream breaks or does not exist any more. */
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
  if (told === undefined) throw new RemoteAgentError("remote_protocol", "it sent a message into the stream of a task");
  assertSame(ids, told);
  const update = progressOf(event, (task) => client.stateOf(task));
  if (update) show({ taskId: ids.taskId, ...update });
}

/** A server refuses to stream a task that has ended. */
function mayGoOn(error: unknown): boolean {
  return isPassing(error) || (error instanceof RemoteAgentError && error.code === "remote_refused");
}
