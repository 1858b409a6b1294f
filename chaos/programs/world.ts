import { shortHash } from "../../src/base/index.ts";
import { type Clock, type Message, textOf, type TroupeEvent } from "../../src/index.ts";
import { rootOf } from "../../src/state/index.ts";
import type { PlannedAct, Program } from "./program.ts";
import type { Reach } from "./reach.ts";

/** What the world outside has seen of programs, one line each, in the order of a process. `at`: milliseconds since the epoch. */
export type WorldLine =
  /**
   * The provider was asked: what it bills for the prompt, which stored messages stand there, whose results, what is wrong
   * with their order, and whether the intent to ask was committed by then.
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
      /** Of the messages of these ids, by `digestOf`. */
      readonly digest: string;
      /** Of the whole prompt, as intents have it. */
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
  /** The same for calls that tools and hooks make. */
  | {
      readonly type: "side";
      readonly root: string;
      readonly run: string;
      readonly inputTokens: number;
      readonly outputTokens: number;
    }
  /** A tool's effect. A keyed receiver has had it when it has had the key. */
  | {
      readonly type: "attempt";
      readonly root: string;
      readonly at: number;
      readonly callId: string;
      readonly key: string;
      readonly tool: string;
      readonly note: string;
      /** Whether the intent to begin the call was committed by then. */
      readonly isGranted: boolean;
    }
  /** The follower of the tree was given this event. */
  | { readonly type: "seen"; readonly root: string; readonly cursor: string; readonly digest: string }
  /** The follower of the tree stopped when the tree was at rest. `last` is the last stored event, `null` if there was none. */
  | { readonly type: "left"; readonly root: string; readonly last: string | null }
  /** The user was about to act on the root agent (`act`), and was told that it is done (`acted`). */
  | ({ readonly type: "act" } & Acting)
  | ({ readonly type: "acted" } & Acting)
  /** The waiter of a turn was told how it ended. */
  | {
      readonly type: "told";
      readonly root: string;
      readonly turn: number;
      readonly turnId: string;
      readonly status: string;
      readonly stopReason: string;
    }
  /** A command that went wrong in a way in which none may. */
  | { readonly type: "fault"; readonly root: string; readonly text: string }
  | { readonly type: "done"; readonly root: string }
  /** How far the clock of the process is. */
  | { readonly type: "time"; readonly root: ""; readonly at: number };

interface Acting {
  readonly root: string;
  readonly at: number;
  readonly does: PlannedAct["does"];
}

export type LineOf<Type extends WorldLine["type"]> = Extract<WorldLine, { type: Type }>;

/** One process of a run. A killed one does nothing any more; where it is only played, its code is kept from the world. */
export class Life {
  readonly #over = Promise.withResolvers<void>();
  readonly over: Promise<void> = this.#over.promise;
  #isOver = false;

  get isOver(): boolean {
    return this.#isOver;
  }

  end(): void {
    this.#isOver = true;
    this.#over.resolve();
  }
}

/** The same for the same messages. */
export function digestOf(messages: readonly Message[]): string {
  const told = messages.map((message) => {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
    return [message.id, message.role, textOf(message.content), calls.map(({ name, arguments: text }) => [name, text])];
  });
  return shortHash(JSON.stringify(told));
}

/** The same for the same event. */
export function eventDigest(event: TroupeEvent): string {
  return `${event.type} ${shortHash(JSON.stringify(event))}`;
}

const never = Promise.withResolvers<never>().promise;

export interface WorldOptions {
  /** By the ids of their root agents. */
  readonly programs: ReadonlyMap<string, Program>;
  readonly clock: Clock;
  /** On the disk of the operating system when it returns: it outlives this process. */
  readonly write: (line: WorldLine) => void;
  /** All that was written up to now, by this process and those before it. */
  readonly written: () => readonly WorldLine[];
  readonly life: Life;
  readonly reach: Pick<Reach, "isGranted">;
}

/** Answers take up to this many milliseconds. */
const SLOWEST_MS = 4;
/** The time is noted so often, in milliseconds. */
const TIME_NOTE_MS = 250;

/**
 * The world of the programs of one process: model, tools and hooks call it and are noted, and at the planned touches it lets the
 * user outside act. Owns the count of touches; the log is what lasts.
 */
export class World {
  readonly programs: ReadonlyMap<string, Program>;
  readonly clock: Clock;
  /** Does what is planned; set by the driver of the programs. It must not throw. */
  onAct: (root: string, does: PlannedAct["does"]) => void = () => undefined;
  /** Called each time a program reaches the world. */
  onTouch: () => void = () => undefined;
  /** Grows with all that happens: a program in which it stands still waits for a decision, or for time. */
  activity = 0;
  /** Grows only with what the programs' own code and waiters see. */
  progress = 0;
  /** The last event that was given to the follower of each tree, in this process or before it. */
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

  /** Tells how far its clock is, for the process that carries on. */
  noteTime(): void {
    const at = this.clock.now();
    if (at - this.#notedAt < TIME_NOTE_MS) return;
    this.#notedAt = at;
    this.note({ type: "time", root: "", at });
  }

  /** The follower of a tree is given its next event. */
  noteSeen(root: string, event: TroupeEvent): void {
    if (event.cursor === null || this.isOver) return;
    this.seen.set(root, event.cursor);
    this.note({ type: "seen", root, cursor: event.cursor, digest: eventDigest(event) });
  }

  /** Whether the intent that this is done for is committed. */
  async isGranted(agentId: string, intent: string): Promise<boolean> {
    return await this.#options.reach.isGranted(agentId, intent);
  }

  /** Whether a call had its effect, as its receiver knows it. */
  wasAttempted(callId: string): boolean {
    return this.#options.written().some((line) => line.type === "attempt" && line.callId === callId);
  }

  /** Notes that code of a program reaches the world, and starts the act that was planned for this touch. */
  async touch(line: LineOf<"asked" | "attempt">): Promise<void> {
    await this.alive();
    this.note(line);
    this.onTouch();
    const { root } = line;
    const touches = (this.#touches.get(root) ?? 0) + 1;
    this.#touches.set(root, touches);
    for (const { at, does } of this.programs.get(root)?.acts ?? []) if (at === touches) this.onAct(root, does);
  }

  /** A while passes, the same one for the same text. */
  async pass(fraction: number, signal: AbortSignal): Promise<void> {
    await this.clock.sleep(fraction * SLOWEST_MS, signal);
    await this.alive();
  }

  /** Never resolves in a process that is dead. */
  async alive(): Promise<void> {
    this.activity += 1;
    if (this.#options.life.isOver) await never;
  }
}
