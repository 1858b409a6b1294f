import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { backoffDelay } from "../../base/index.ts";
import { StoreUnavailableError } from "../../errors/index.ts";
import { type KnownTrees, TreeCache } from "./redis-cache.ts";
import { evaluate, type RedisConnection, textsOf } from "./redis-connection.ts";
import { noticeOf } from "./redis-foreign-writes.ts";
import type { RedisHints, ToldHints } from "./redis-indexes.ts";
import { fields, type TreeKeys } from "./redis-keys.ts";
import { rowsScript } from "./redis-read-scripts.ts";
import { seenRow } from "./redis-rows.ts";
import { applyScript, unlockScript } from "./redis-scripts.ts";
import { Answers, type Missing, TreeSession } from "./redis-session.ts";
import {
  type Applied,
  appliedOf,
  encoded,
  keep,
  learn,
  settle,
  type WaitingWork,
  workOff,
} from "./redis-transaction.ts";

export interface LineContext {
  readonly connection: RedisConnection;
  readonly hints: RedisHints;
  /** Tells this process' changes from others'. */
  readonly owner: string;
  readonly channel: string;
  /** Called after the tree was changed from here. */
  readonly onChanged: (session: TreeSession) => void;
}

/** Pieces of work that share one script, so that it stays short. */
const GROUP = 64;
/** A tree of so few rows is read as a whole. */
const FEW_ROWS = 256;
/** How often a group may find that others were faster, until it asks for the tree to itself. */
const FAIR_ATTEMPTS = 4;
const LOCK_MS = 2000;
const pauses = { baseMs: 2, capMs: 40 };

/**
 * The transactions of one tree, one group after the other.
 * Owns: their order in this process, the cache, running again. Does not own: what they do.
 *
 * Invariants
 * 1. A group is answered only after everything it has read was validated and everything it writes was written, in one step.
 * 2. A group that others were faster than runs again with what they wrote; after some tries it has the tree to itself.
 * 3. After a failure of which nobody knows whether it came before or after the step, nothing of the cache is believed.
 */
export class TreeLine {
  readonly tree: TreeKeys;
  readonly cache = new TreeCache();
  /** Whether another process has written since a transaction was validated here. */
  isDoubtful = false;
  readonly #context: LineContext;
  #waiting: WaitingWork[] = [];
  #running: Promise<void> | undefined;

  constructor(tree: TreeKeys, context: LineContext) {
    this.tree = tree;
    this.#context = context;
  }

  get isIdle(): boolean {
    return this.#running === undefined;
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    await this.#running;
  }

  add(work: WaitingWork): void {
    this.#waiting.push(work);
    this.#running ??= this.#runAll();
  }

  async #runAll(): Promise<void> {
    // Whatever else this moment brings joins the first group.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = this.#waiting.slice(0, GROUP);
      let settled = group.length;
      try {
        settled = await this.#runGroup(group);
      } catch (error) {
        this.cache.clear();
        for (const work of group) work.reject(error);
      }
      this.#waiting = this.#waiting.slice(settled);
    }
    this.#running = undefined;
  }

  /** Settles some from the beginning of the group, at least one; gives how many. */
  async #runGroup(group: readonly WaitingWork[]): Promise<number> {
    const { connection } = this.#context;
    const end = performance.now() + connection.timeoutMs;
    const answers = new Answers();
    let lockedUntil = 0;
    let isFresh = !this.isDoubtful;
    try {
      for (let failures = 0; ; ) {
        const session = new TreeSession(this.tree, this.cache, answers);
        const { outcomes, missing } = workOff(group, session);
        if (missing.length > 0) await this.#load(missing, answers);
        else if (!isFresh && session.hints.some(({ kind }) => kind !== "look")) {
          isFresh = true;
          await this.#look(session);
        } else {
          const applied = await this.#apply(session);
          if (applied.type === "done") {
            for (const outcome of outcomes) settle(outcome, applied.cursor);
            return outcomes.length;
          }
          failures += 1;
          if (applied.type === "changed") learn(session, this.cache, applied.facts);
          if (failures >= FAIR_ATTEMPTS && performance.now() >= lockedUntil) lockedUntil = await this.#lock();
          if (failures > 1) await delay(1 + backoffDelay(failures, Math.random(), pauses));
        }
        if (performance.now() > end) throw this.#gaveUp(failures);
      }
    } finally {
      if (lockedUntil > 0)
        connection.script(unlockScript, [this.tree.lock], [this.#context.owner]).catch(() => undefined);
    }
  }

  /** As the script would find its rows: what a list is told is a write of its own, and in vain where others were faster. */
  async #look(session: TreeSession): Promise<void> {
    const checks = [...session.checks.values()].filter(({ kind }) => kind === "row");
    if (checks.length === 0) return;
    const names = checks.map(({ name }) => name);
    const stored = await this.#context.connection.run((client) => client.hmget(this.tree.rows, ...names));
    const facts = checks.flatMap(({ expected, ...fact }, place) => {
      const value = stored[place] ?? "";
      return seenRow(value).version === expected ? [] : [{ ...fact, value }];
    });
    learn(session, this.cache, facts);
  }

  async #apply(session: TreeSession): Promise<Applied> {
    const { connection, hints, owner, channel } = this.#context;
    const told = await hints.tell(session.hints);
    const notice = noticeOf(session);
    const message = notice && `${owner} ${notice}`;
    const transaction = encoded(session, { id: randomUUID(), owner, hintsAt: told.at, channel, message });
    if (!transaction) return { type: "done", version: "", cursor: 0 };
    const { keys, before, after } = transaction;
    const answer = await connection.run(async (client, repeat) => {
      // A Redis that was away may have forgotten what it was told before; a list must not lack what is in a tree.
      if (repeat > 0) await hints.tell(session.hints);
      return await evaluate(client, applyScript, keys, [...before, repeat > 0 ? "1" : "0", ...after]);
    });
    const applied = appliedOf(answer, keys);
    this.isDoubtful = false;
    if (applied.type === "done") {
      keep(session, this.cache, applied.version);
      this.#correct(session, told);
      if (notice) this.#context.onChanged(session);
    }
    return applied;
  }

  /** One that stays there when this fails is passed over by readers. */
  #correct(session: TreeSession, { stamps }: ToldHints): void {
    const looks = session.hints.filter(({ kind }) => kind === "look");
    const { hints } = this.#context;
    for (const [index, look] of looks.entries()) {
      const { keys, member } = look;
      const later = session.hints.slice(session.hints.indexOf(look) + 1);
      // It was left and taken up again in one step.
      if (later.some((one) => one.member === member && one.keys.list === keys.list && one.kind !== "look")) continue;
      hints.correct(keys, member, stamps[index] ?? "").catch(() => undefined);
    }
  }

  async #load(missing: readonly Missing[], answers: Answers): Promise<void> {
    const rows = new Set<string>();
    const others = new Map<string, Missing>();
    for (const one of missing) {
      if (one.rows.length === 0) others.set(one.key, one);
      for (const name of one.rows) rows.add(name);
    }
    const loads = [...others.values()].map(async ({ key, load }) => answers.set(key, await load()));
    if (rows.size > 0) loads.push(this.loadRows([...rows]));
    await Promise.all(loads);
  }

  /** Takes rows into the cache; all of the tree, where they are few. */
  async loadRows(names: readonly string[]): Promise<void> {
    const { rows } = this.tree;
    // Whoever posts asks for this row too.
    const wanted = [...new Set([...names, fields.posts])];
    const answer = await this.#context.connection.script(rowsScript, [rows], [FEW_ROWS, ...wanted]);
    if (!Array.isArray(answer)) return;
    const [kind, ...values]: unknown[] = answer;
    if (kind === "all") {
      const texts = textsOf(values);
      const all = new Map<string, string>();
      for (let at = 0; at < texts.length; at += 2) all.set(texts[at] ?? "", texts[at + 1] ?? "");
      this.cache.noteAll(all);
      return;
    }
    for (const [index, name] of wanted.entries()) {
      const value = values[index];
      this.cache.note(name, typeof value === "string" ? value : undefined);
    }
  }

  /** Until when this process has the tree to itself; 0 while another one has. */
  async #lock(): Promise<number> {
    const { connection, owner } = this.#context;
    const asked = performance.now();
    const answer = await connection.run((client) => client.set(this.tree.lock, owner, "PX", LOCK_MS, "NX"));
    return answer === "OK" ? asked + LOCK_MS : 0;
  }

  #gaveUp(failures: number): StoreUnavailableError {
    const { timeoutMs } = this.#context.connection;
    const why = failures === 0 ? "took too long to read" : "was changed by others again and again";
    return new StoreUnavailableError(`the tree ${this.tree.tag} ${why}, for ${timeoutMs} ms; nothing was written`, {
      details: { code: failures === 0 ? "ETIMEDOUT" : "CONTENDED" },
    });
  }
}

/** Rows of all trees that are kept in this process, about; what is past that is read anew when it is needed. */
const CACHED_ROWS = 50_000;
/** How many pieces of work come between two looks at how much is kept. */
const WORKS_BETWEEN_LOOKS = 256;

/** The transaction lines of a process. Owns: which trees it knows, and how much of them. Does not own: what they do. */
export class TreeLines implements KnownTrees {
  readonly #lines = new Map<string, TreeLine>();
  readonly #onNew: (line: TreeLine) => void;
  #works = 0;

  constructor(onNew: (line: TreeLine) => void) {
    this.#onNew = onNew;
  }

  /** The line of a tree, for one more piece of work. */
  of(tree: TreeKeys, context: LineContext): TreeLine {
    this.#works += 1;
    if (this.#works % WORKS_BETWEEN_LOOKS === 0) this.#forgetSome();
    const known = this.#lines.get(tree.tag);
    const line = known ?? new TreeLine(tree, context);
    if (!known) this.#onNew(line);
    // Those that were used last are last.
    this.#lines.delete(tree.tag);
    this.#lines.set(tree.tag, line);
    return line;
  }

  /** A row that is older than what is known costs an attempt more, and no more than that. */
  note({ tag }: TreeKeys, field: string, stored: string | undefined): void {
    this.#lines.get(tag)?.cache.note(field, stored);
  }

  isDoubtful({ tag }: TreeKeys): boolean {
    return this.#lines.get(tag)?.isDoubtful ?? false;
  }

  /** Another process has written to the tree. */
  doubt(tag: string): void {
    const line = this.#lines.get(tag);
    if (line) line.isDoubtful = true;
  }

  all(): readonly TreeLine[] {
    return [...this.#lines.values()];
  }

  async idle(): Promise<void> {
    await Promise.all(this.all().map((line) => line.idle()));
  }

  #forgetSome(): void {
    let size = 0;
    for (const line of this.all()) size += line.cache.size;
    for (const [tag, line] of this.#lines) {
      if (size <= CACHED_ROWS) return;
      if (!line.isIdle) continue;
      size -= line.cache.size;
      this.#lines.delete(tag);
    }
  }
}
