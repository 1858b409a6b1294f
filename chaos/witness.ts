import type { Stores } from "../src/index.ts";
import { StoreUnavailableError } from "../src/errors/index.ts";
import { openLineWriter } from "./line-log.ts";

interface Seen {
  readonly pid: number;
  /** Times of the request and the answer, in milliseconds of a clock that all processes share and that is never set. */
  readonly sentAt: number;
  readonly at: number;
}

/** The stores' answers to one process, one line each. */
export type WitnessLine = Seen &
  (
    | { readonly type: "acquired"; readonly agentId: string; readonly epoch: number }
    | {
        readonly type: "committed";
        readonly agentId: string;
        readonly epoch: number;
        /** Seqs of the batch's entries; `last` is less than `first` if it had none. */
        readonly first: number;
        readonly last: number;
        readonly messageIds: readonly string[];
      }
    | { readonly type: "stale"; readonly agentId: string; readonly epoch: number }
    | { readonly type: "released"; readonly agentId: string; readonly epoch: number }
    /** The stores reported a loss in the agent's tree. */
    | { readonly type: "rolledBack"; readonly agentId: string }
    | { readonly type: "unavailable"; readonly call: string; readonly code: string }
  );

/** Members that send no request to the stores. */
const listeners: ReadonlySet<keyof Stores> = new Set(["onForeignWrite", "onRolledBack", "close"]);

type Fact<Line = WitnessLine> = Line extends WitnessLine ? Omit<Line, keyof Seen> : never;

/**
 * Wraps stores and logs their answers: leases, commits, refusals. It logs exactly the answers that the caller gets, before
 * the caller gets them.
 */
export function witnessed(stores: Stores, path: string): Stores {
  const log = openLineWriter(path, { sync: false });
  const say = (fact: Fact, sentAt: number): void => log.append({ ...fact, pid: process.pid, sentAt, at: steadyNow() });
  stores.onRolledBack(({ rootAgentId }) => say({ type: "rolledBack", agentId: rootAgentId }, steadyNow()));
  const overheard: Pick<Stores, "acquire" | "commit" | "release"> = {
    release: async (key, epoch, ...rest) => {
      const sentAt = steadyNow();
      const released = await stores.release(key, epoch, ...rest);
      if (released) say({ type: "released", agentId: key.agentId, epoch }, sentAt);
      return released;
    },
    acquire: async (key, ...rest) => {
      const sentAt = steadyNow();
      const outcome = await stores.acquire(key, ...rest);
      if (outcome.type === "acquired") say({ type: "acquired", agentId: key.agentId, epoch: outcome.epoch }, sentAt);
      return outcome;
    },
    commit: async (batches, ...rest) => {
      const sentAt = steadyNow();
      const outcomes = await stores.commit(batches, ...rest);
      for (const [index, { key, epoch, expectedSeq, entries, messages }] of batches.entries()) {
        const { agentId } = key;
        if (outcomes[index]?.type === "stale") say({ type: "stale", agentId, epoch }, sentAt);
        if (outcomes[index]?.type !== "committed") continue;
        const seqs = { first: expectedSeq + 1, last: expectedSeq + entries.length };
        say({ type: "committed", agentId, epoch, ...seqs, messageIds: messages.map(({ id }) => id) }, sentAt);
      }
      return outcomes;
    },
  };
  return new Proxy(stores, {
    get: (target, name: keyof Stores) => {
      const member = name in overheard ? overheard[name as keyof typeof overheard] : target[name];
      if (typeof member !== "function" || listeners.has(name)) return member;
      const call = member as (...given: unknown[]) => Promise<unknown>;
      return async (...given: unknown[]): Promise<unknown> => {
        const sentAt = steadyNow();
        try {
          return await call(...given);
        } catch (error) {
          const code = error instanceof StoreUnavailableError ? String(error.details["code"]) : undefined;
          if (code !== undefined) say({ type: "unavailable", call: name, code }, sentAt);
          throw error;
        }
      };
    },
  });
}

/** Milliseconds since the machine was started. */
export function steadyNow(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
