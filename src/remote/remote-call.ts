import type { Message, StreamResponse, Task } from "@a2a-js/sdk";
import { InvalidInputError, OutcomeUnknownError } from "../errors/index.ts";
import { type JsonObject, plainMediaType } from "../state/index.ts";
import {
  type AskedRequest,
  type RunContext,
  type ToolAnswer,
  type ToolResult,
  toolResult,
  type ToolResultPart,
} from "../tools/index.ts";
import { type CallContexts, messageIdOf, type Note, noteOf } from "./call-contexts.ts";
import { Credentials } from "./credentials.ts";
import type { RemoteAgentOptions } from "./remote-options.ts";
import { RemoteClient, type RemoteEndpoint } from "./remote-client.ts";
import { isPassing, isTaskLost, RemoteAgentError, shortened, wasNotTaken } from "./remote-error.ts";
import {
  assertSame,
  DECISIONS,
  isEnded,
  isWaiting,
  MESSAGE_KEYS,
  piecesOfMessage,
  piecesOfTask,
  questionOf,
  type RemoteIds,
  type RemotePiece,
  type RemoteQuestion,
  partsText,
  usageOf as usageOfTask,
} from "./remote-task.ts";
import { type OpenStream, pause, streamOf, takeEvent, taskNow, type Watching, watchTask } from "./remote-watch.ts";
import { answerOf, cancelTask, firstOf, isDenial, Lingering, textPart } from "./remote-messages.ts";

export interface RemoteSettings extends Pick<RemoteAgentOptions, "name" | "auth" | "honoursMessageIds" | "usage"> {
  readonly place: RemoteEndpoint;
  readonly timeoutMs: number;
  readonly places: CallContexts;
}

/** Attempts to send a first message that certainly has not arrived. */
const FIRST_TRIES = 3;
/** Attempts to send a message that may safely be repeated. */
const SEND_TRIES = 8;
/** Maximum time to cancel a task after its timeout, in milliseconds. */
const CANCEL_MS = 5_000;
/** Maximum number of files of one task that are saved. */
const MOST_FILES = 100;

/** The immediate result of a message. */
type Sent =
  | { readonly message: Message }
  | { readonly ids: RemoteIds; readonly first: StreamResponse; readonly stream: OpenStream };

/** One call, from its first message to the end of its task; or a later section of it, after a restart or an answer. */
export class RemoteCall {
  readonly #settings: RemoteSettings;
  readonly #run: RunContext;
  /** Stored, because the run is over when the turn has ended, and a message may still be in flight. */
  readonly #callId: string;
  readonly #ending: AbortSignal;
  readonly #late = new AbortController();
  /** Aborts with the turn, and at the agent's timeout. */
  readonly #signal: AbortSignal;
  readonly #message: Pick<Message, "messageId" | "parts" | "extensions">;
  readonly #credentials: Credentials;
  #note: Note | null;
  /** The answer to the last message, which may still be streaming. */
  #stream: OpenStream | undefined;

  constructor(settings: RemoteSettings, run: RunContext, input: string) {
    this.#settings = settings;
    this.#run = run;
    this.#callId = run.callId;
    this.#ending = run.signal;
    this.#signal = AbortSignal.any([run.signal, this.#late.signal]);
    this.#message = { messageId: messageIdOf(run, "input"), parts: [textPart(input)], extensions: [] };
    this.#credentials = new Credentials(settings.auth, run);
    this.#note = noteOf(run.noted);
  }

  /**
   * Returns the answer for the model, or a question. Rejects with `RemoteAgentError`, `OutcomeUnknownError`,
   * `UnsupportedError`.
   */
  async perform(): Promise<string | ToolResult | AskedRequest> {
    const { places, name, timeoutMs } = this.#settings;
    const before = this.#note;
    const contextId = before?.contextId ?? places.contextFor(this.#run, name);
    places.hold(contextId, this.#callId);
    const fresh = {
      contextId,
      deadlineAt: Date.now() + timeoutMs,
      taskId: null,
      asked: null,
      passedOn: null,
      files: {},
    };
    this.#note = before ?? fresh;
    // After the wait for a person, the agent gets its full time again.
    if (this.#unpassed() !== null) this.#note = { ...this.#note, deadlineAt: fresh.deadlineAt };
    const timer = setTimeout(() => this.#late.abort(), Math.max(0, this.#note.deadlineAt - Date.now()));
    let isAsking = false;
    try {
      const outcome = await this.#work(before);
      isAsking = typeof outcome !== "string";
      return typeof outcome === "string" ? this.#credentials.hide(outcome) : outcome;
    } catch (error) {
      throw this.#credentials.hiddenError(error);
    } finally {
      clearTimeout(timer);
      this.#stream?.stop();
      if (!isAsking) places.release(this.#callId);
    }
  }

  /** Cancels the task of a call whose turn is ending. */
  async cancel(): Promise<void> {
    const { places } = this.#settings;
    try {
      if (this.#note === null) return;
      const told = this.#note.taskId ?? (await places.toldOf(this.#callId));
      const client = await this.#open();
      await cancelTask(client, told ?? (await this.#idAgain(client)), this.#ending);
    } catch (error) {
      throw this.#credentials.hiddenError(error);
    } finally {
      this.#stream?.stop();
      places.release(this.#callId);
    }
  }

  async #open(): Promise<RemoteClient> {
    return await RemoteClient.open(this.#settings.place, () => this.#credentials.headers(), this.#ending);
  }

  async #work(before: Note | null): Promise<string | ToolResult | AskedRequest> {
    const client = await this.#reached(before !== null);
    let ids = this.#ids();
    try {
      if (ids !== undefined) return await this.#watched(client, ids, await this.#passOn(client, ids));
      const sent = await this.#begin(client, before !== null);
      if ("message" in sent) return await this.#rendered(piecesOfMessage(sent.message));
      ids = sent.ids;
      return await this.#watched(client, ids, sent);
    } catch (error) {
      if (ids === undefined || this.#ending.aborted) throw error;
      return await this.#leave(client, ids, error);
    }
  }

  /** Opens the client; for a call that has already started, waits until the remote agent is reachable. */
  async #reached(isBegun: boolean): Promise<RemoteClient> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#open();
      } catch (error) {
        if (!isPassing(error) || (!isBegun && tries >= FIRST_TRIES)) throw error;
        if (!this.#late.signal.aborted) await pause(tries, this.#signal).catch(() => this.#ending.throwIfAborted());
        if (this.#late.signal.aborted) throw this.#tooLate(this.#ids() !== undefined, false);
      }
    }
  }

  #ids(): RemoteIds | undefined {
    const { taskId = null, contextId = "" } = this.#note ?? {};
    return taskId === null ? undefined : { taskId, contextId };
  }

  /** The local decision that was not forwarded to the task yet. */
  #unpassed(): ToolAnswer | null {
    const { answer } = this.#run;
    return answer === null || answer.requestId === this.#note?.passedOn?.requestId ? null : answer;
  }

  async #keep(change: Partial<Note>): Promise<void> {
    const note = { ...this.#note, ...change } as Note;
    await this.#run.note(note);
    this.#note = note;
  }

  /** Whether a repeated message finds its task. The server must know the context for that. */
  #isKeyed(client: RemoteClient): boolean {
    const isHonoured = this.#settings.honoursMessageIds ?? client.extensions.has(MESSAGE_KEYS);
    return isHonoured && this.#note?.contextId !== "";
  }

  /** Sends the task. Stores that before, and stores the task's id as soon as it is known. */
  async #begin(client: RemoteClient, wasSent: boolean): Promise<Sent> {
    const isKeyed = this.#isKeyed(client);
    if (wasSent && !isKeyed) {
      throw new OutcomeUnknownError("the process ended before the remote agent had returned the id of its task");
    }
    if (!wasSent) await this.#keep({});
    let mayBeTaken = wasSent;
    for (let tries = 1; ; tries += 1) {
      try {
        const sent = await this.#send(client, this.#message);
        if ("ids" in sent) await this.#keep({ taskId: sent.ids.taskId, contextId: sent.ids.contextId });
        return sent;
      } catch (error) {
        if (this.#ending.aborted) throw error;
        mayBeTaken ||= !wasNotTaken(error);
        const most = mayBeTaken ? (isKeyed ? SEND_TRIES : 0) : FIRST_TRIES;
        if (this.#late.signal.aborted || !isPassing(error) || tries >= most)
          throw mayBeTaken ? unknownOf(error) : error;
        await pause(tries, this.#signal).catch(() => this.#ending.throwIfAborted());
      }
    }
  }

  /** Sends a message, and waits for its first result. */
  async #send(client: RemoteClient, said: Pick<Message, "messageId" | "parts" | "extensions">): Promise<Sent> {
    const { contextId = "" } = this.#note ?? {};
    const { taskId = "" } = this.#ids() ?? {};
    const lingering = new Lingering(this.#ending, this.#late.signal);
    const stream = streamOf(
      (signal) => client.send(client.message({ ...said, contextId, taskId }), signal),
      lingering.signal,
    );
    this.#stream = stream;
    const sending = firstOf(stream, !client.isStreaming);
    if (taskId === "") {
      const told = sending.then(({ ids }) => ids?.taskId);
      this.#settings.places.sending(this.#callId, told);
    }
    try {
      const { ids, event } = await sending;
      if (ids === undefined) return { message: event.payload?.value as Message };
      if (taskId !== "") assertSame({ taskId, contextId }, ids);
      return { ids: { taskId: ids.taskId, contextId: ids.contextId || contextId }, first: event, stream };
    } catch (error) {
      stream.stop();
      throw error;
    } finally {
      lingering.isOver();
    }
  }

  /** Watches the task until it ends or asks something. */
  async #watched(client: RemoteClient, ids: RemoteIds, sent?: Sent): Promise<string | ToolResult | AskedRequest> {
    const { name } = this.#settings;
    const watching: Watching = {
      client,
      ids,
      signal: this.#signal,
      isRest: (task) => {
        const state = client.stateOf(task);
        return isEnded(state) || (isWaiting(state) && questionOf(task, state).key !== this.#note?.passedOn?.key);
      },
      show: (update) => this.#show({ remote: name, ...update }),
    };
    if (sent && "first" in sent) takeEvent(watching, sent.first);
    const task = await watchTask(watching, sent && "stream" in sent ? sent.stream : undefined);
    const state = client.stateOf(task);
    if (isEnded(state)) return await this.#finished(task, state);
    const question = questionOf(task, state);
    await this.#keep({ asked: { key: question.key, request: question.request } });
    return this.#ask(question);
  }

  #show(update: JsonObject): void {
    if (this.#ending.aborted) return;
    const shown = Object.entries(update).map(([key, value]) => [
      key,
      typeof value === "string" ? this.#credentials.hide(value) : value,
    ]);
    this.#run.progress(Object.fromEntries(shown) as JsonObject);
  }

  #ask({ kind, prompt, about }: RemoteQuestion): AskedRequest {
    const words = `The remote agent "${this.#settings.name}" asks: ${this.#credentials.hide(prompt)}`;
    try {
      return this.#run.ask({ kind, prompt: words, arguments: about });
    } catch (error) {
      // The details come from the remote agent, and may be too large or nested too deeply.
      if (!(error instanceof InvalidInputError)) throw error;
      return this.#run.ask({ kind, prompt: words });
    }
  }

  /** Forwards the decision to the waiting task, unless the task has already continued. */
  async #passOn(client: RemoteClient, ids: RemoteIds): Promise<Sent | undefined> {
    const answer = this.#unpassed();
    const asked = this.#note?.asked;
    if (answer === null || !asked) return undefined;
    const passedOn = { requestId: answer.requestId, key: asked.key };
    const { deadlineAt } = this.#note ?? { deadlineAt: 0 };
    for (let tries = 1; ; tries += 1) {
      const task = await taskNow(client, ids, this.#signal);
      const state = task && client.stateOf(task);
      const isAsking = task && state !== undefined && isWaiting(state) && questionOf(task, state).key === asked.key;
      if (task && !isAsking) break;
      if (task && isDenial(answer)) {
        await cancelTask(client, ids.taskId, this.#signal);
        const why =
          answer.verdict === "expired" ? "no decision came in time" : (answer.reason ?? "no reason was given");
        throw new RemoteAgentError("remote_denied", `the remote agent's request was refused: ${why}`);
      }
      // The next requests contain the credentials; no message is needed.
      if (task && answer.verdict === "provided") break;
      try {
        if (task) {
          const sent = await this.#send(
            client,
            answerOf(this.#run, answer, asked.request, client.extensions.has(DECISIONS)),
          );
          await this.#keep({ passedOn, deadlineAt });
          return sent;
        }
      } catch (error) {
        // Another client may have decided at the remote agent meanwhile; the task shows it.
        const isDecided = error instanceof RemoteAgentError && error.code === "remote_refused" && tries < FIRST_TRIES;
        if (this.#signal.aborted || !(isPassing(error) || isDecided)) throw error;
      }
      await pause(tries, this.#signal);
    }
    await this.#keep({ passedOn, deadlineAt });
    return undefined;
  }

  /** The result of a task that is no longer watched: it timed out, or cannot be followed. */
  async #leave(client: RemoteClient, ids: RemoteIds, error: unknown): Promise<string | ToolResult> {
    if (isTaskLost(error)) throw unknownOf(error);
    const isLate = this.#late.signal.aborted;
    const isFault = error instanceof RemoteAgentError && error.code === "remote_protocol";
    if (!isLate && !isFault) throw error;
    const limit = AbortSignal.any([this.#ending, AbortSignal.timeout(CANCEL_MS)]);
    const isCancelled = await cancelTask(client, ids.taskId, limit).then(
      () => true,
      () => false,
    );
    if (!isLate) throw error;
    const task = await taskNow(client, ids, limit).catch(() => undefined);
    const state = task && client.stateOf(task);
    // The task may have ended at the last moment.
    if (task && state === "TASK_STATE_COMPLETED") return await this.#finished(task, state);
    if (task && state !== undefined && isEnded(state)) await this.#bill(task);
    throw this.#tooLate(true, isCancelled);
  }

  #tooLate(isKnown: boolean, isCancelled: boolean): Error {
    const time = `within ${this.#settings.timeoutMs / 1_000} s`;
    if (!isKnown) return new OutcomeUnknownError(`the remote agent did not return the id of its task ${time}`);
    const end = isCancelled ? "was cancelled" : "could not be cancelled";
    return new RemoteAgentError("remote_timeout", `the remote agent did not end ${time}; its task ${end}`);
  }

  async #finished(task: Task, state: string): Promise<string | ToolResult> {
    await this.#bill(task);
    if (state === "TASK_STATE_COMPLETED") return await this.#rendered(piecesOfTask(task));
    const words = shortened(partsText(task.status?.message?.parts ?? []));
    const how = state.replace("TASK_STATE_", "").toLowerCase();
    throw new RemoteAgentError(
      "remote_failed",
      `the remote agent's task was ${how}${words === "" ? "" : `: ${words}`}`,
    );
  }

  async #bill(task: Task): Promise<void> {
    const { name, usage = usageOfTask } = this.#settings;
    const used = usage(task);
    if (used === undefined) return;
    const { inputTokens, outputTokens, cost } = used;
    await this.#run.bill({ key: task.id, model: `a2a:${name}`, inputTokens, outputTokens, cost });
  }

  /** The pieces in order. Files are saved as artifacts of the call. */
  async #rendered(pieces: readonly RemotePiece[]): Promise<ToolResult | string> {
    const parts: ToolResultPart[] = [];
    let files = 0;
    for (const piece of pieces) {
      if ("text" in piece) {
        parts.push({ type: "text", text: piece.text });
        continue;
      }
      files += 1;
      if (files > MOST_FILES) continue;
      const { key, name, contentType, content } = piece.file;
      let artifactId = this.#note?.files[key];
      if (artifactId === undefined) {
        ({ artifactId } = await this.#run.saveArtifact({
          name,
          contentType,
          content: typeof content === "string" ? this.#credentials.hide(content) : content,
        }));
        await this.#keep({ files: { ...this.#note?.files, [key]: artifactId } });
      }
      const mediaType = plainMediaType(contentType) ?? "application/octet-stream";
      parts.push({ type: "file", mediaType, artifactId, name });
    }
    if (files > MOST_FILES) parts.push({ type: "text", text: `[${files - MOST_FILES} more files were not saved]` });
    if (files > 0) return toolResult({ content: parts });
    const texts = parts.map((part) => (part.type === "text" ? part.text : ""));
    return texts.join("\n\n") || "(The remote agent gave no answer.)";
  }

  /** The id of a task whose message was sent, or was about to be, when the process ended. */
  async #idAgain(client: RemoteClient): Promise<string> {
    const sent = this.#isKeyed(client) ? await this.#send(client, this.#message) : undefined;
    if (sent && "ids" in sent) return sent.ids.taskId;
    throw new RemoteAgentError("remote_lost", "the id of the remote agent's task is unknown");
  }
}

/** The error for a message that the remote agent may have received. */
function unknownOf(error: unknown): Error {
  const words = error instanceof Error ? error.message : String(error);
  return new OutcomeUnknownError(`the remote agent may have received the task, but then: ${words}`, { cause: error });
}
