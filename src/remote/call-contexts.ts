import { createHash } from "node:crypto";
import { z } from "zod";
import type { RunContext } from "../tools/index.ts";

/** How far a call has come, stored with it. */
const noteSchema = z.object({
  contextId: z.string(),
  /** Milliseconds since the epoch at which the task is cancelled. */
  deadlineAt: z.number(),
  /** `null` if the message was sent, or is about to be, and the remote agent has not told an id. */
  taskId: z.string().nullable(),
  /** What the task waits for, as it was asked here. */
  asked: z
    .object({
      key: z.string(),
      request: z.object({ requestId: z.string(), argumentsHash: z.string().nullable() }).nullable(),
    })
    .nullable(),
  /** The last request here whose decision was passed on, and the key of what it was about. */
  passedOn: z.object({ requestId: z.string(), key: z.string() }).nullable(),
  /** Ids of the artifacts that files were saved as, by the keys of the files. */
  files: z.record(z.string(), z.string()),
});
export type Note = z.output<typeof noteSchema>;

/** `null` if the call has begun nothing. */
export function noteOf(noted: unknown): Note | null {
  return noted === null ? null : noteSchema.parse(noted);
}

/**
 * Where the calls of one tool are at its remote agent: names of contexts and messages, and tasks whose ids are being told.
 *
 * Invariants
 * 1. The names follow from the call alone, so that a call that is repeated after a crash says the same.
 * 2. Two calls that are open at once in this process never share a context: a message to a context in which a task waits for an
 *    answer would be taken for the answer.
 */
export class CallContexts {
  readonly #mode: "agent" | "call" | "server";
  /** The call that has a context now. */
  readonly #holders = new Map<string, string>();
  /** Sends in flight, by call: the id of the task, once it is told. */
  readonly #sending = new Map<string, Promise<string | undefined>>();

  constructor(mode: "agent" | "call" | "server") {
    this.#mode = mode;
  }

  /** The context for a new call; "" leaves it to the server. */
  contextFor(run: RunContext, tool: string): string {
    if (this.#mode === "server") return "";
    const own = nameOf(run, tool, run.callId);
    if (this.#mode === "call") return own;
    const shared = nameOf(run, tool);
    const holder = this.#holders.get(shared);
    return holder === undefined || holder === run.callId || !isBeside(holder, run.callId) ? shared : own;
  }

  /** The call is open in this context. */
  hold(contextId: string, callId: string): void {
    if (contextId !== "") this.#holders.set(contextId, callId);
  }

  release(callId: string): void {
    for (const [contextId, holder] of this.#holders) if (holder === callId) this.#holders.delete(contextId);
  }

  /** `told` gives the id of the task that a message begins. */
  sending(callId: string, told: Promise<string | undefined>): void {
    const known = told.catch(() => undefined);
    this.#sending.set(callId, known);
    void known.finally(() => {
      if (this.#sending.get(callId) === known) this.#sending.delete(callId);
    });
  }

  /** The id of the task that a message in flight begins; undefined where none is in flight, or it failed. */
  async toldOf(callId: string): Promise<string | undefined> {
    return await this.#sending.get(callId);
  }
}

/** Whether two calls may be open at once: those of one answer. Of an agent's other calls all have ended before. */
function isBeside(one: string, other: string): boolean {
  const [round, otherRound] = [one, other].map((callId) => callId.slice(0, callId.lastIndexOf(":")));
  return round === otherRound;
}

/**
 * The id of a message of a call: the same one each time, and no other call's. `place`: what it answers. The beginning of the turn
 * is a part of it, because turns that are not stored may have the same ids.
 */
export function messageIdOf(run: RunContext, place: string): string {
  return nameOf(run, "message", run.callId, String(run.trace[0]?.at), place);
}

function nameOf({ agent }: RunContext, ...parts: readonly string[]): string {
  const text = JSON.stringify([agent.tenant, agent.agentId, ...parts]);
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
