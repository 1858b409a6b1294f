import { shortHash } from "../../src/base/index.ts";
import { type Clock, type Message, textOf, type TroupeEvent } from "../../src/index.ts";
import { rootOf } from "../../src/state/index.ts";
import type { PlannedAct, Program } from "./program.ts";
import type { Life } from "../../src/testing/simulation/life.ts";
import type { Reach } from "../../src/testing/simulation/reach.ts";

/** The world's log of programs, in order per process. `at`: milliseconds since the epoch. */
export type WorldLine =
  /**
   * A request to the provider: the prompt's billed tokens, its stored messages, its results, a fault in their order, and
   * whether the intent was already committed.
   */
  | {
      readonly type: "asked";
      readonly root: string;
      readonly at: number;
      readonly turnId: string;
      readonly step: number;
      readonly inputTokens: number;
      readonly ids: readonly string[];
      readonly told: readonly string[];
      /** Digest of the messages with these ids, by `digestOf`. */
      readonly digest: string;
      /** Hash of the whole prompt, as in intents. */
      readonly promptHash: string;
      readonly isGranted: boolean;
      readonly fault?: string | undefined;
    }
  | {
      readonly type: "answered";
      readonly root: string;
      readonly turnId: string;
      readonly step: number;
      readonly outputTokens: number;
    }
  /** A model call by a tool or hook. */
  | {
      readonly type: "side";
      readonly root: string;
      readonly run: string;
      readonly inputTokens: number;
      readonly outputTokens: number;
    }
  /** A tool's attempt at an effect. A keyed receiver applies each key once. */
  | {
      readonly type: "attempt";
      readonly root: string;
      readonly at: number;
      readonly callId: string;
      readonly key: string;
      readonly tool: string;
      readonly note: string;
      /** Whether the call's intent was already committed. */
      readonly isGranted: boolean;
    }
  /** The follower of the tree received this event. */
  | { readonly type: "seen"; readonly root: string; readonly cursor: string; readonly digest: string }
  /** The follower stopped when the tree had finished. `last` is the last stored event, `null` if there was none. */
  | { readonly type: "left"; readonly root: string; readonly last: string | null }
  /** The user started an action on the root agent (`act`), and it was acknowledged (`acted`). */
  | ({ readonly type: "act" } & Acting)
  | ({ readonly type: "acted" } & Acting)
  /** The user was told where another input for the running turn went. `step`: `null` if it has opened a turn. */
  | {
      readonly type: "steered";
      readonly root: string;
      readonly key: string;
      readonly turnId: string;
      readonly step: number | null;
    }
  /** The waiter of a turn received its outcome. */
  | {
      readonly type: "told";
      readonly root: string;
      readonly turn: number;
      readonly turnId: string;
      readonly status: string;
      readonly stopReason: string;
    }
  /** A command that failed in an unexpected way. */
  | { readonly type: "fault"; readonly root: string; readonly text: string }
  | { readonly type: "done"; readonly root: string }
  /** The time of the process's clock. */
  | { readonly type: "time"; readonly root: ""; readonly at: number };

interface Acting {
  readonly root: string;
  readonly at: number;
  readonly does: PlannedAct["does"];
}

export type LineOf<Type extends WorldLine["type"]> = Extract<WorldLine, { type: Type }>;

/** Equal messages have equal digests. */
export function digestOf(messages: readonly Message[]): string {
  const told = messages.map((message) => {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
    return [message.id, message.role, textOf(message.content), calls.map(({ name, arguments: text }) => [name, text])];
  });
  return shortHash(JSON.stringify(told));
}

/** Equal events have equal digests. */
export function eventDigest(event: TroupeEvent): string {
  return `${event.type} ${shortHash(JSON.stringify(event))}`;
}

const never = Promise.withResolvers<never>().promise;

export interface WorldOptions {
  /** Programs by root agent id. */
  readonly programs: ReadonlyMap<string, Program>;
  readonly clock: Clock;
  /** Appends a line that survives this process once this returns. */
  readonly write: (line: WorldLine) => void;
  /** All lines so far, from this process and earlier ones. */
  readonly written: () => readonly WorldLine[];
  readonly life: Life;
  readonly reach: Pick<Reach, "isGranted">;
}

/** Longest duration of answers, in milliseconds. */
const SLOWEST_MS = 4;
/** Interval at which the time is logged, in milliseconds. */
const TIME_NOTE_MS = 250;

/**
 * The world of the programs of one process: it logs calls by the model, tools and hooks, and triggers the user's actions at
 * the planned touches. Owns the count of touches; only the log survives the process.
 */
export class World {
  readonly programs: ReadonlyMap<string, Program>;
  readonly clock: Clock;
  /** Performs a planned action; set by the programs' driver. Must not throw. */
  onAct: (root: string, act: PlannedAct) => void = () => undefined;
  /** Called at each touch of the world by a program. */
  onTouch: () => void = () => undefined;
  /** Increases with every activity. If it stays constant, the programs wait for a decision or for time. */
  activity = 0;
  /** Increases only with activities that the programs' code and waiters see. */
  progress = 0;
  /** The last event that the follower of each tree received, in this or an earlier process. */
  readonly seen = new Map<string, string>();
  readonly #options: WorldOptions;
  readonly #touches = new Map<string, number>();
  #notedAt: number;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.programs = options.programs;
    this.clock = options.clock;
    for (const line of options.written()) {
      const { root, type } = line;
      if (type === "asked" || type === "attempt") this.#touches.set(root, (this.#touches.get(root) ?? 0) + 1);
      if (type === "seen") this.seen.set(root, line.cursor);
    }
    this.#notedAt = options.clock.now();
  }

  get isOver(): boolean {
    return this.#options.life.isOver;
  }

  programOf(agentId: string): Program | undefined {
    return this.programs.get(rootOf(agentId));
  }

  note(line: WorldLine): void {
    this.activity += 1;
    if (line.type !== "time") this.progress += 1;
    if (!this.isOver) this.#options.write(line);
  }

  /** Logs the time of its clock, for the process that continues. */
  noteTime(): void {
    const at = this.clock.now();
    if (at - this.#notedAt < TIME_NOTE_MS) return;
    this.#notedAt = at;
    this.note({ type: "time", root: "", at });
  }

  /** Logs the next event of a tree's follower. */
  noteSeen(root: string, event: TroupeEvent): void {
    if (event.cursor === null || this.isOver) return;
    this.seen.set(root, event.cursor);
    this.note({ type: "seen", root, cursor: event.cursor, digest: eventDigest(event) });
  }

  /** Whether the intent of this activity is committed. */
  async isGranted(agentId: string, intent: string): Promise<boolean> {
    return await this.#options.reach.isGranted(agentId, intent);
  }

  /** Whether a call had its effect, according to its receiver. */
  wasAttempted(callId: string): boolean {
    return this.#options.written().some((line) => line.type === "attempt" && line.callId === callId);
  }

  /** Counts a touch of the world by a program, and starts the action planned for it. */
  async touch(line: LineOf<"asked" | "attempt">): Promise<void> {
    await this.alive();
    this.note(line);
    this.onTouch();
    const { root } = line;
    const touches = (this.#touches.get(root) ?? 0) + 1;
    this.#touches.set(root, touches);
    for (const act of this.programs.get(root)?.acts ?? []) if (act.at === touches) this.onAct(root, act);
  }

  /** Waits for a duration that is determined by the text. */
  async pass(fraction: number, signal: AbortSignal): Promise<void> {
    await this.clock.sleep(fraction * SLOWEST_MS, signal);
    await this.alive();
  }

  /** Never resolves in a dead process. */
  async alive(): Promise<void> {
    this.activity += 1;
    if (this.#options.life.isOver) await never;
  }
}
