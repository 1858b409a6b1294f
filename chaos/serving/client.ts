import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type SseFrame, sseFrames } from "../../test/support/sse-frames.ts";
import { taskPrefix } from "../model/script.ts";
import type { SeededRandom } from "../../src/testing/simulation/seeded-random.ts";
import type { ClientPlace, Counts, NodeClient } from "./killed-nodes.ts";
import { tokenOf } from "./team.ts";

/** A durable event received over a stream. */
export interface SeenEvent {
  readonly id: string;
  readonly type: string;
  /** Hash of its data. */
  readonly hash: string;
}

/** A turn from the view of the client that requested it. */
export interface AskedTurn {
  readonly key: string;
  readonly task: string;
  /** Turn ids in all answers to requests with the key. */
  readonly turnIds: readonly string[];
  /** Durable events of the turn's own stream; `undefined` if it was requested without a stream. */
  readonly seen: readonly SeenEvent[] | undefined;
  /** Type of its last event; `undefined` if it was never received. */
  readonly end: string | undefined;
}

export interface ApiCounts extends Counts {
  /** Number of answers that mark the turn as existing already. */
  replayed: number;
  /** Number of events without an id. */
  live: number;
}

export interface ClientOptions extends ClientPlace {
  readonly random: SeededRandom;
  readonly counts: ApiCounts;
}

/** Longest time for a turn or an answer. Two kills with their pauses take minutes on a busy machine. */
const LOST_MS = 600_000;
const AGAIN_MS = 50;
/** Pause between two turns. */
const LONGEST_PAUSE_MS = 3_000;
/**
 * Shares of turns that are requested twice at once, again after their end, with another body, and with their own stream.
 */
const TWICE = 0.2;
const AFTERWARDS = 0.2;
const OTHER_BODY = 0.05;
const STREAMED = 0.25;

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly isReplayed: boolean;
}

/** Requests turns and follows its tree, each time at another node. Continues at another node when a connection breaks. */
export class ServedClient implements NodeClient {
  readonly turns: AskedTurn[] = [];
  /** Durable events of the tree, over all connections. */
  readonly seen: SeenEvent[] = [];
  readonly faults: string[] = [];
  agentId = "";
  readonly #options: ClientOptions;
  readonly #left = new AbortController();
  readonly #ends = new Map<string, PromiseWithResolvers<string>>();

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  get asked(): number {
    return this.turns.length;
  }

  /** Requests turns until the scenario is over, but at least one. */
  async run(isOver: () => boolean): Promise<void> {
    const { number, random } = this.#options;
    await delay(random.between(0, LONGEST_PAUSE_MS));
    const made = await this.#ask("/api/agents", { definition: "desk" }, `client-${number}`);
    this.agentId = String(made.body["agentId"]);
    const following = this.#follow();
    try {
      do {
        await this.#takeTurn(this.turns.length + 1);
        await delay(random.between(0, LONGEST_PAUSE_MS));
      } while (!isOver() && this.faults.length === 0);
    } catch (error) {
      this.#fault(error instanceof Error ? error.message : String(error));
    } finally {
      this.#left.abort();
      await following;
    }
  }

  async #takeTurn(number: number): Promise<void> {
    const { random } = this.#options;
    const [key, task] = [`turn-${number}`, `${this.agentId}/t${number}`];
    const path = `/api/agents/${this.agentId}/turns`;
    const body = { input: `${taskPrefix}${task}` };
    const isStreamed = random.next() < STREAMED;
    const asking = isStreamed ? [] : random.next() < TWICE ? [1, 2] : [1];
    const seen = isStreamed ? await this.#turnStream(path, body, key) : undefined;
    const answers = await Promise.all(asking.map(() => this.#ask(path, body, key)));
    if (random.next() < OTHER_BODY) await this.#askOtherwise(path, key);
    // The concurrent stream of the tree must report the end too.
    const end = await this.#endOf(`${this.agentId}#${number}`);
    if (isStreamed || random.next() < AFTERWARDS) {
      const late = await this.#ask(path, body, key);
      if (!late.isReplayed) this.#fault(`${key}: a repetition after its end is not marked as one`);
      answers.push(late);
    }
    const turnIds = answers.map((answer) => String(answer.body["turnId"]));
    this.turns.push({ key, task, turnIds, seen, end });
    if (end === undefined) this.#fault(`${key}: no stream reported its end within ${LOST_MS / 1_000} s`);
  }

  async #endOf(turnId: string): Promise<string | undefined> {
    const cancel = new AbortController();
    const lost = delay(LOST_MS, undefined, { signal: cancel.signal }).catch(() => undefined);
    const end = await Promise.race([this.#ending(turnId).promise, lost]);
    cancel.abort();
    return end ?? undefined;
  }

  #ending(turnId: string): PromiseWithResolvers<string> {
    const known = this.#ends.get(turnId) ?? Promise.withResolvers<string>();
    this.#ends.set(turnId, known);
    return known;
  }

  /** Sends the key of a turn with another input. */
  async #askOtherwise(path: string, key: string): Promise<void> {
    const { status, body } = await this.#ask(path, { input: "something else" }, key, [422]);
    if (status !== 422) this.#fault(`${key}: with another body it was answered ${status}: ${JSON.stringify(body)}`);
  }

  /** Repeats a request until it succeeds, or is refused with one of the expected codes. */
  async #ask(path: string, body: object, key: string, refusals: readonly number[] = []): Promise<Answer> {
    const { nextNode, counts } = this.#options;
    const until = performance.now() + LOST_MS;
    for (;;) {
      const answer = await fetchWhole(`${nextNode()}${path}`, this.#request(body, key));
      if (answer?.isReplayed) counts.replayed += 1;
      if (answer && (answer.status < 300 || refusals.includes(answer.status))) return answer;
      if (answer && !isPassing(answer)) {
        throw new Error(`${key}: ${path} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
      }
      if (performance.now() > until) throw new Error(`${key}: ${path} had no answer after ${LOST_MS / 1_000} s`);
      counts.again += 1;
      await delay(AGAIN_MS);
    }
  }

  #request(body: object, key: string): RequestInit {
    const headers = { ...this.#headers(), "content-type": "application/json", "idempotency-key": key };
    return { method: "POST", headers, body: JSON.stringify(body) };
  }

  #headers(): Record<string, string> {
    return { authorization: `Bearer ${tokenOf(this.#options.number)}` };
  }

  /** Follows the events of the tree until the client leaves. */
  async #follow(): Promise<void> {
    const { signal } = this.#left;
    const path = `/api/trees/${this.agentId}/events`;
    await this.#streamed(path, { headers: this.#headers(), signal }, (frame) => {
      const event = this.#taken(frame, this.seen);
      const turnId = event && isEnd(event.type) ? turnOf(frame) : undefined;
      if (event && turnId !== undefined) this.#ending(turnId).resolve(event.type);
      return false;
    });
  }

  /** Starts a turn with a stream. Requests it again with the key and the last event id whenever the stream breaks. */
  async #turnStream(path: string, body: object, key: string): Promise<SeenEvent[]> {
    const { method, headers, ...init } = this.#request(body, key);
    const seen: SeenEvent[] = [];
    const request = { ...init, method: method ?? "POST", headers: { ...(headers as Record<string, string>), accept } };
    await this.#streamed(path, request, (frame) => {
      const event = this.#taken(frame, seen);
      return event !== undefined && isEnd(event.type) && turnOf(frame)?.startsWith(`${this.agentId}#`) === true;
    });
    return seen;
  }

  /** Reads a stream over as many connections as needed, until `take` received the last frame or the client leaves. */
  async #streamed(
    path: string,
    init: Omit<RequestInit, "headers"> & { readonly headers: Readonly<Record<string, string>> },
    take: (frame: SseFrame) => boolean,
  ): Promise<void> {
    const { nextNode, counts } = this.#options;
    let lastId: string | undefined;
    while (!this.#left.signal.aborted) {
      const headers = { ...init.headers, ...(lastId === undefined ? {} : { "last-event-id": lastId }) };
      try {
        const response = await fetch(`${nextNode()}${path}`, { ...init, headers });
        if (response.headers.get("idempotency-replayed") === "true") counts.replayed += 1;
        if (!response.ok) {
          const answer = { status: response.status, body: (await response.json()) as Answer["body"] };
          if (!isPassing(answer)) return this.#fault(`${path} was answered ${JSON.stringify(answer)}`);
          counts.again += 1;
          await delay(AGAIN_MS);
          continue;
        }
        counts.streams += 1;
        for await (const frame of sseFrames(response)) {
          lastId = frame.id ?? lastId;
          if (take(frame)) return;
        }
      } catch (error) {
        if (!isCut(error) && !this.#left.signal.aborted) throw error;
      }
      if (this.#left.signal.aborted) return;
      counts.cut += 1;
      await delay(AGAIN_MS);
    }
  }

  #taken({ id, event = "", data }: SseFrame, seen: SeenEvent[]): SeenEvent | undefined {
    if (id === undefined) {
      this.#options.counts.live += 1;
      return undefined;
    }
    const one = { id, type: event, hash: hashOf(data) };
    seen.push(one);
    return one;
  }

  #fault(text: string): void {
    this.faults.push(`client ${this.#options.number} (${this.agentId}): ${text}`);
  }
}

const accept = "text/event-stream";

export function isEnd(type: string): boolean {
  return type === "turn.completed" || type === "turn.stopped" || type === "turn.failed";
}

export function hashOf(data: string): string {
  return createHash("sha256").update(data).digest("base64url");
}

function turnOf({ data }: SseFrame): string | undefined {
  return (JSON.parse(data) as { readonly turnId?: string }).turnId;
}

/** Returns `undefined` if the answer is missing or incomplete. */
async function fetchWhole(url: string, init: RequestInit): Promise<Answer | undefined> {
  try {
    const response = await fetch(url, init);
    const body = (await response.json()) as Answer["body"];
    return { status: response.status, body, isReplayed: response.headers.get("idempotency-replayed") === "true" };
  } catch (error) {
    if (isCut(error)) return undefined;
    throw error;
  }
}

/** A refused or broken connection, or a truncated body. */
function isCut(error: unknown): boolean {
  return error instanceof TypeError || error instanceof SyntaxError;
}

/** Whether an answer permits a retry of the same request. */
function isPassing({ body }: Pick<Answer, "body">): boolean {
  return (body["error"] as { readonly retryable?: boolean } | undefined)?.retryable === true;
}
