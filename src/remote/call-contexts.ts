import { createHash } from "node:crypto";
import { z } from "zod";
import type { RunContext } from "../tools/index.ts";

/** The progress of a call, stored with it. */
const noteSchema = z.object({
  contextId: z.string(),
  /** Time at which the task is cancelled, in milliseconds since the epoch. */
  deadlineAt: z.number(),
  /** `null` if the message was sent or is about to be, and the remote agent has not returned an id yet. */
  taskId: z.string().nullable(),
  /** The request that the task waits for, as it was opened for the caller. */
  asked: z
    .object({
      key: z.string(),
      request: z.object({ requestId: z.string(), argumentsHash: z.string().nullable() }).nullable(),
    })
    .nullable(),
  /** The last local request whose decision was forwarded, and the key of its question. */
  passedOn: z.object({ requestId: z.string(), key: z.string() }).nullable(),
  /** Ids of the artifacts that files were saved as, keyed by the files' keys. */
  files: z.record(z.string(), z.string()),
});
export type Note = z.output<typeof noteSchema>;

/** Returns `null` if the call has not started. */
export function noteOf(noted: unknown): Note | null {
  return noted === null ? null : noteSchema.parse(noted);
}

/**
 * Tracks the calls of one tool at its remote agent: names of contexts and messages, and tasks whose ids are pending.
 *
 * Invariants
 * 1. Names are derived from the call alone, so that a call repeated after a crash uses the same ones.
 * 2. Two calls that are open at once in this process never share a context: if a task in it waits for an answer, the
 *    other call's message would be taken for that answer.
 */
export class CallContexts {
  readonly #mode: "agent" | "call" | "server";
  /** The call that currently uses each context. */
  readonly #holders = new Map<string, string>();
  /** The pending task id of each message in flight, by call. */
  readonly #sending = new Map<string, Promise<string | undefined>>();

  constructor(mode: "agent" | "call" | "server") {
    this.#mode = mode;
  }

  /** The context for a new call; "" leaves the choice to the server. */
  contextFor(run: RunContext, tool: string): string {
    if (this.#mode === "server") return "";
    const own = nameOf(run, tool, run.callId);
    if (this.#mode === "call") return own;
    const shared = nameOf(run, tool);
    const holder = this.#holders.get(shared);
    return holder === undefined || holder === run.callId || !isBeside(holder, run.callId) ? shared : own;
  }

  /** Registers that the call uses this context. */
  hold(contextId: string, callId: string): void {
    if (contextId !== "") this.#holders.set(contextId, callId);
  }

  release(callId: string): void {
    for (const [contextId, holder] of this.#holders) if (holder === callId) this.#holders.delete(contextId);
  }

  /** `told` resolves with the id of the task that a message starts. */
  sending(callId: string, told: Promise<string | undefined>): void {
    const known = told.catch(() => undefined);
    this.#sending.set(callId, known);
    void known.finally(() => {
      if (this.#sending.get(callId) === known) this.#sending.delete(callId);
    });
  }

  /** The id of the task that a message in flight starts; `undefined` if no message is in flight or it failed. */
  async toldOf(callId: string): Promise<string | undefined> {
    return await this.#sending.get(callId);
  }
}

/**
 * Whether two calls may be open at once, which only calls of one answer are. All other calls of an agent have ended
 * before.
 */
function isBeside(one: string, other: string): boolean {
  const [round, otherRound] = [one, other].map((callId) => callId.slice(0, callId.lastIndexOf(":")));
  return round === otherRound;
}

/**
 * The id of a message of a call: stable, and unique to the call. `place`: the message's purpose. The time of the turn's
 * start is included, because turns that are not stored may have the same ids.
 */
export function messageIdOf(run: RunContext, place: string): string {
  return nameOf(run, "message", run.callId, String(run.trace[0]?.at), place);
}

function nameOf({ agent }: RunContext, ...parts: readonly string[]): string {
  const text = JSON.stringify([agent.tenant, agent.agentId, ...parts]);
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
