import { InvariantError } from "../../errors/index.ts";
import type { TreeCache } from "./redis-cache.ts";
import { textsOf } from "./redis-connection.ts";
import { isHead } from "./redis-keys.ts";
import { absentRow, seenRow } from "./redis-rows.ts";
import { checkOfRow, type IndexWrite, Missing, NotTogether, type TreeSession } from "./redis-session.ts";

interface Envelope {
  readonly id: string;
  readonly owner: string;
  readonly indexedAt: string;
  readonly channel: string;
  readonly message: string;
}

/** The keys and arguments of the script. */
interface EncodedTransaction {
  readonly keys: readonly string[];
  /** `repeat`: how often it was sent before. Always the same list, which is read at once. */
  readonly args: (repeat: number) => readonly string[];
}

/** Where the script has the flag of a transaction that may have been applied before. */
const FLAG = 2;
/** Where it has the count of rows. */
const ROWS = 7;

/** Undefined if nothing was read and nothing is to be written. `indexWrites`: those that become true with the rest. */
export function encoded(
  session: TreeSession,
  envelope: Envelope,
  indexWrites: readonly IndexWrite[],
): EncodedTransaction | undefined {
  const { tree, checks, operations, written } = session;
  if (checks.size === 0 && operations.length === 0 && written.size === 0) return undefined;
  const keys = [tree.rows, tree.meta, tree.journal, tree.lock, tree.expiring];
  const numbers = new Map(keys.map((key, index) => [key, String(index + 1)]));
  const numberOf = (key: string): string => {
    const known = numbers.get(key);
    if (known !== undefined) return known;
    keys.push(key);
    numbers.set(key, String(keys.length));
    return String(keys.length);
  };
  const { id, owner, indexedAt, channel, message } = envelope;
  const args = [id, owner, "", indexedAt, channel, message, String(session.newest), ""];
  let rows = 0;
  for (const { kind, name, expected } of checks.values()) {
    if (kind !== "row") continue;
    args.push(name, expected);
    rows += 1;
  }
  for (const [name, , , , head] of operations) {
    if (name !== "item" || typeof head !== "string" || checks.has(checkOfRow(head))) continue;
    args.push(head, "*");
    rows += 1;
  }
  args[ROWS] = String(rows);
  const place = args.push("") - 1;
  let others = 0;
  for (const { kind, key, name, expected } of checks.values()) {
    if (kind === "row") continue;
    args.push(kind, numberOf(key), name, expected);
    others += 1;
  }
  args[place] = String(others);
  // First, so that nothing is changed where an index cannot be written.
  for (const write of indexWrites) if (write.kind !== "leaving") pushIndex(args, write, numberOf);
  for (const operation of operations) {
    args.push(operation[0]);
    for (let at = 1; at < operation.length; at += 1) {
      const one = operation[at];
      args.push(typeof one === "object" ? numberOf(one.key) : (one ?? ""));
    }
  }
  for (const write of leavingForGood(indexWrites)) pushIndex(args, write, numberOf);
  for (const [field, { text }] of written) {
    if (text === undefined) args.push("gone", field);
    else args.push("row", field, text);
  }
  return {
    keys,
    args: (repeat) => {
      args[FLAG] = repeat > 0 ? "1" : "0";
      return args;
    },
  };
}

/** Without those that are written again in the same step: an agent that was released and acquired. */
export function leavingForGood(writes: readonly IndexWrite[]): IndexWrite[] {
  return writes.filter(({ kind, member, keys: { list } }, at) => {
    const isAgain = (one: IndexWrite): boolean =>
      one.member === member && one.keys.list === list && one.kind !== "leaving";
    return kind === "leaving" && !writes.slice(at + 1).some(isAgain);
  });
}

function pushIndex(
  args: string[],
  { kind, keys: { list, stamps }, member, score, isBeside }: IndexWrite,
  numberOf: (key: string) => string,
): void {
  // An entry of this kind comes right with the next look at it, whatever it was: it needs no note of when it was written.
  if (isBeside && kind === "at") args.push("place", numberOf(list), member, String(score));
  else args.push("index", numberOf(list), numberOf(stamps), kind, member, String(score ?? ""));
}

export type Applied =
  | {
      readonly type: "done";
      readonly version: string;
      readonly cursor: number;
      /** Who held the agent of each inbox that got something, "" for nobody; empty if that is not known. */
      readonly holders: ReadonlyMap<string, string>;
    }
  | { readonly type: "changed"; readonly facts: readonly ChangedFact[] }
  | { readonly type: "locked" | "late" };

/** A transaction that was written: the tree's cursor before it, and who held those to whom it posted. */
export type Done = Pick<Extract<Applied, { type: "done" }>, "cursor" | "holders">;

interface ChangedFact {
  readonly kind: string;
  readonly key: string;
  readonly name: string;
  readonly value: string;
}

export function appliedOf(answer: unknown, keys: readonly string[], { operations }: TreeSession): Applied {
  const parts = textsOf(answer);
  const [type = "", ...others] = parts;
  if (type === "locked" || type === "late") return { type };
  if (type === "done") {
    const [version = "", cursor, ...holders] = others;
    const inboxes = operations.flatMap(([name, inbox]) =>
      name === "item" && typeof inbox === "object" ? [inbox.key] : [],
    );
    const held = holders.flatMap((holder, at) => (inboxes[at] === undefined ? [] : [[inboxes[at], holder] as const]));
    return { type, version, cursor: Number(cursor), holders: new Map(held) };
  }
  if (type !== "changed") throw new InvariantError(`the script apply answered ${type}`);
  const facts: ChangedFact[] = [];
  for (let at = 0; at < others.length; at += 4) {
    const [kind = "", number = "", name = "", value = ""] = others.slice(at, at + 4);
    facts.push({ kind, key: keys[Number(number) - 1] ?? "", name, value });
  }
  return { type, facts };
}

/** Puts what a session has written into the cache, under the new version. */
export function keep(session: TreeSession, cache: TreeCache, version: string): void {
  if (session.whole) cache.clear();
  cache.saw(version);
  for (const hash of session.definitions.keys()) cache.definitions.add(hash);
  for (const { key, name, expected } of session.checks.values()) {
    if (key === session.tree.definitions && expected === "1") cache.definitions.add(name);
  }
  for (const [field, { kind, text, value }] of session.written) {
    if (kind === "collection") cache.putMembers(field, { version, value });
    else if (kind === "changed collection") cache.forgetMembers(field);
    else cache.putRow(field, text === undefined ? absentRow : { version, text, value });
  }
}

/** Updates cache and answers with what the script found changed. */
export function learn(session: TreeSession, cache: TreeCache, facts: readonly ChangedFact[]): void {
  for (const { kind, key, name, value } of facts) {
    if (kind === "older") {
      session.answers.forgetAll();
      cache.rollBack(Number(value));
    } else if (kind === "row") {
      const { version } = seenRow(value);
      // Another process has written to the tree since it was rolled back. Heads exist as long as their tree; other rows
      // may be removed.
      const mayBeGone = version === "" && !isHead(name);
      const isOlder = !mayBeGone && Number(session.checks.get(checkOfRow(name))?.expected) > Number(version);
      if (isOlder) cache.rollBack(Number(version));
      cache.note(name, value === "" ? undefined : value);
    } else if (kind === "tree") session.answers.forget("whole");
    else session.answers.set(`${kind}|${key}|${name}`, value);
  }
}

/** A piece of work that waits for its tree. */
export interface QueuedWork {
  /** Runs the work over a session; what it throws is its result, unless it is a signal of the session. */
  readonly run: (session: TreeSession) => unknown;
  /** With its result, and what became of the transaction. */
  readonly resolve: (result: unknown, done: Done) => void;
  readonly reject: (error: unknown) => void;
}

interface Outcome {
  readonly work: QueuedWork;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** Runs the works of a group one after the other, until one cannot join the group. */
export function runTogether(
  group: readonly QueuedWork[],
  session: TreeSession,
): { readonly outcomes: readonly Outcome[]; readonly missing: readonly Missing[] } {
  const outcomes: Outcome[] = [];
  const missing: Missing[] = [];
  for (const work of group) {
    if (!session.isOpen) break;
    try {
      outcomes.push({ work, result: session.run(() => work.run(session)) });
    } catch (error) {
      if (error instanceof Missing) missing.push(error);
      else if (error instanceof NotTogether) {
        if (outcomes.length + missing.length === 0)
          throw new InvariantError(`a piece of work does not go with itself: ${error.why}`);
        break;
      } else outcomes.push({ work, error });
    }
  }
  return { outcomes, missing };
}

/** Answers the caller of a piece of work. */
export function settle({ work, result, error }: Outcome, done: Done): void {
  if (error === undefined) work.resolve(result, done);
  else work.reject(error);
}
