import { InvariantError } from "../../errors/index.ts";
import type { TreeCache } from "./redis-cache.ts";
import { textsOf } from "./redis-connection.ts";
import { isHead, type TreeKeys } from "./redis-keys.ts";
import { absentRow, seenRow } from "./redis-rows.ts";
import { checkOfRow, type IndexWrite, type TreeSession } from "./redis-session.ts";

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
  /** `repeat`: the number of earlier attempts. Always returns the same array, so read it at once. */
  readonly args: (repeat: number) => readonly string[];
}

/** Position of the script's flag for a transaction that may have been applied before. */
const FLAG = 2;
/** Position of the row count. */
const ROWS = 7;

/** `undefined` if nothing was read and nothing is to be written. `indexWrites`: index entries to write in the same step. */
export function encoded(
  session: TreeSession,
  envelope: Envelope,
  indexWrites: readonly IndexWrite[],
): EncodedTransaction | undefined {
  const { tree, checks, operations, written } = session;
  if (checks.size === 0 && operations.length === 0 && written.size === 0) return undefined;
  const keys = new KeyNumbers(tree);
  const { id, owner, indexedAt, channel, message } = envelope;
  const args = [id, owner, "", indexedAt, channel, message, String(session.newest), ""];
  pushRows(args, session);
  args[ROWS] = String((args.length - ROWS - 1) / 2);
  const place = args.push("") - 1;
  checks.forEach(({ kind, key, name, expected }) => {
    if (kind !== "row") args.push(kind, keys.numberOf(key), name, expected);
  });
  args[place] = String((args.length - place - 1) / 4);
  // Index writes come first, so that nothing is changed if one of them fails.
  for (let at = 0; at < indexWrites.length; at += 1) {
    const write = indexWrites[at];
    if (write && write.kind !== "leaving") pushIndex(args, write, keys);
  }
  pushOperations(args, operations, keys);
  for (const write of leavingForGood(indexWrites)) pushIndex(args, write, keys);
  written.forEach(({ text }, field) => {
    if (text === undefined) args.push("gone", field);
    else args.push("row", field, text);
  });
  return {
    keys: keys.all,
    args: (repeat) => {
      args[FLAG] = repeat > 0 ? "1" : "0";
      return args;
    },
  };
}

/** The keys of a transaction; its operations refer to them by number. */
class KeyNumbers {
  readonly all: string[] = [];
  readonly #numbers = new Map<string, string>();

  constructor({ rows, meta, journal, lock, expiring }: TreeKeys) {
    for (const key of [rows, meta, journal, lock, expiring]) this.numberOf(key);
  }

  numberOf(key: string): string {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = String(this.all.push(key));
    this.#numbers.set(key, number);
    return number;
  }
}

/** The rows to validate, and those that operations read. */
function pushRows(args: string[], { checks, operations }: TreeSession): void {
  checks.forEach(({ kind, name, expected }) => {
    if (kind === "row") args.push(name, expected);
  });
  for (let at = 0; at < operations.length; at += 1) {
    const operation = operations[at];
    const head = operation?.[0] === "item" ? operation[4] : undefined;
    if (typeof head === "string" && !checks.has(checkOfRow(head))) args.push(head, "*");
  }
}

function pushOperations(args: string[], operations: TreeSession["operations"], keys: KeyNumbers): void {
  for (let at = 0; at < operations.length; at += 1) {
    const operation = operations[at];
    if (operation === undefined) continue;
    for (let part = 0; part < operation.length; part += 1) {
      const one = operation[part];
      args.push(typeof one === "object" ? keys.numberOf(one.key) : (one ?? ""));
    }
  }
}

/** Without members that are written again in the same step, because an agent was released and acquired. */
export function leavingForGood(writes: readonly IndexWrite[]): IndexWrite[] {
  return writes.filter(({ kind, member, keys: { list } }, at) => {
    const isAgain = (one: IndexWrite): boolean =>
      one.member === member && one.keys.list === list && one.kind !== "leaving";
    return kind === "leaving" && !writes.slice(at + 1).some(isAgain);
  });
}

function pushIndex(
  args: string[],
  { kind, keys: { list, stamps }, member, score, isUnstamped }: IndexWrite,
  keys: KeyNumbers,
): void {
  if (isUnstamped && kind === "at") args.push("place", keys.numberOf(list), member, String(score));
  else args.push("index", keys.numberOf(list), keys.numberOf(stamps), kind, member, String(score ?? ""));
}

export type Applied =
  | {
      readonly type: "done";
      readonly version: string;
      readonly cursor: number;
      /** The process that held the agent of each inbox that got an item, "" if there was none; empty if unknown. */
      readonly holders: ReadonlyMap<string, string>;
    }
  | { readonly type: "changed"; readonly facts: readonly ChangedFact[] }
  | { readonly type: "locked" | "late" };

/** A written transaction: the tree's cursor before it, and the holders of the agents to which it posted. */
export type Done = Pick<Extract<Applied, { type: "done" }>, "cursor" | "holders">;

interface ChangedFact {
  readonly kind: string;
  readonly key: string;
  readonly name: string;
  readonly value: string;
}

export function appliedOf(answer: unknown, keys: readonly string[], { operations }: TreeSession): Applied {
  if (typeof answer === "string") return doneOf(answer, operations);
  const [type = "", ...others] = textsOf(answer);
  if (type === "locked" || type === "late") return { type };
  if (type !== "changed") throw new InvariantError(`the script apply returned ${type}`);
  const facts: ChangedFact[] = [];
  for (let at = 0; at < others.length; at += 4) {
    const [kind = "", number = "", name = "", value = ""] = others.slice(at, at + 4);
    facts.push({ kind, key: keys[Number(number) - 1] ?? "", name, value });
  }
  return { type, facts };
}

function doneOf(answer: string, operations: TreeSession["operations"]): Applied {
  const lines = answer.split("\n");
  const holders = new Map<string, string>();
  let place = 2;
  for (let at = 0; at < operations.length && place < lines.length; at += 1) {
    const operation = operations[at];
    const inbox = operation?.[0] === "item" ? operation[1] : undefined;
    if (typeof inbox !== "object") continue;
    holders.set(inbox.key, lines[place] ?? "");
    place += 1;
  }
  return { type: "done", version: lines[0] ?? "", cursor: Number(lines[1]), holders };
}

/** Puts the changes of a session into the cache, under the new version. */
export function keep(session: TreeSession, cache: TreeCache, version: string): void {
  if (session.isPurged) return cache.forget();
  if (session.whole) cache.clear();
  cache.saw(version);
  session.definitions.forEach((_, hash) => cache.definitions.add(hash));
  session.checks.forEach(({ key, name, expected }) => {
    if (key === session.tree.definitions && expected === "1") cache.definitions.add(name);
  });
  session.written.forEach(({ kind, text, value }, field) => {
    if (kind === "collection") cache.putMembers(field, { version, value });
    else if (kind === "changed collection") cache.forgetMembers(field);
    else cache.putRow(field, text === undefined ? absentRow : { version, text, value });
  });
}

/** Updates cache and answers with the values that the script found changed. */
export function learn(session: TreeSession, cache: TreeCache, facts: readonly ChangedFact[]): void {
  for (const { kind, key, name, value } of facts) {
    if (kind === "older") {
      session.answers.forgetAll();
      cache.rollBack(Number(value));
    } else if (kind === "row") {
      const { version } = seenRow(value);
      // Another process has written to the tree since it was rolled back. Heads exist as long as their tree; other rows may be removed.
      const mayBeGone = version === "" && !isHead(name);
      const isOlder = !mayBeGone && Number(session.checks.get(checkOfRow(name))?.expected) > Number(version);
      if (isOlder) cache.rollBack(Number(version));
      cache.note(name, value === "" ? undefined : value);
    } else if (kind === "tree") session.answers.forget("whole");
    else session.answers.set(`${kind}|${key}|${name}`, value);
  }
}
