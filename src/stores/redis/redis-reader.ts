import { z } from "zod";
import { turnAccountId } from "../../budget/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import {
  type AgentKey,
  type Artifact,
  type Deletion,
  type Entry,
  type InboxItem,
  type JournalRow,
  messageSchema,
  type Timer,
  type TurnRecord,
} from "../../state/index.ts";
import type { StoredLook } from "../rules/outcomes.ts";
import type { DeletionQuery } from "../rules/queries.ts";
import { answerIdOf, isPast } from "../rules/turns.ts";
import type { KnownTrees, LoadedMembers } from "./redis-cache.ts";
import { type RedisConnection, textsOf } from "./redis-connection.ts";
import { fields, type TreeKeys, turnFields } from "./redis-keys.ts";
import {
  agentRowsScript,
  collectionScript,
  familiesScript,
  inboxScript,
  rowsScript,
  timersScript,
  turnLookScript,
} from "./redis-read-scripts.ts";
import { parsed } from "../rules/stored-values.ts";
import {
  checkOrder,
  dueTimersIn,
  itemsIn,
  journalRowOf,
  ordered,
  type PlacedArtifact,
  placedArtifacts,
  readRow,
  type RowKind,
  rowKinds,
  seenRow,
  type StoredMessage,
  timerIn,
  turnIn,
  valueOf,
  waitersIn,
} from "./redis-rows.ts";

/** How many rows are read at once, so that other clients do not wait for long. */
const PAGE = 500;

const contentSchema = z.string();

/** Reads one tree outside of its transactions; every call reads from Redis. */
export class RedisReader {
  readonly #connection: RedisConnection;
  readonly #known: KnownTrees;

  constructor(connection: RedisConnection, known: KnownTrees) {
    this.#connection = connection;
    this.#known = known;
  }

  async deletions(
    tree: TreeKeys,
    { since, isPending, limit }: Omit<DeletionQuery, "tenant"> & { readonly limit: number },
  ): Promise<Deletion[]> {
    const key = isPending === true ? tree.open : tree.due;
    const hashes = await this.#connection.run((client) =>
      client.zrangebyscore(key, since ?? "-inf", "+inf", "LIMIT", 0, limit),
    );
    return await this.rows(
      tree,
      hashes.map((idHash) => rowKinds.deletion(idHash)),
    );
  }

  async row<T>(tree: TreeKeys, kind: RowKind<T>): Promise<T | undefined> {
    const stored = (await this.#connection.run((client) => client.hget(tree.rows, kind.field))) ?? undefined;
    return valueOf(this.#known.note(tree, kind.field, stored), kind, tree.rows);
  }

  /** In the order of `kinds`; missing rows are left out. */
  async rows<T>({ rows }: TreeKeys, kinds: readonly RowKind<T>[]): Promise<T[]> {
    const found: T[] = [];
    for (let at = 0; at < kinds.length; at += PAGE) {
      const page = kinds.slice(at, at + PAGE);
      const stored = await this.#connection.run((client) => client.hmget(rows, ...page.map(({ field }) => field)));
      for (const [index, kind] of page.entries()) {
        const text = stored[index];
        const value = typeof text === "string" ? valueOf(seenRow(text), kind, rows) : undefined;
        if (value !== undefined) found.push(value);
      }
    }
    return found;
  }

  async list(key: string): Promise<string[]> {
    return this.#connection.run((client) => client.lrange(key, 0, -1));
  }

  async hash(key: string): Promise<Map<string, string>> {
    const [, ...texts] = textsOf(await this.#connection.script(rowsScript, [key], [Number.MAX_SAFE_INTEGER]));
    const found = new Map<string, string>();
    for (let at = 0; at < texts.length; at += 2) found.set(texts[at] ?? "", texts[at + 1] ?? "");
    return found;
  }

  async field(key: string, name: string): Promise<string | null> {
    return this.#connection.run((client) => client.hget(key, name));
  }

  /** 0 if it does not exist. */
  async number(key: string, name: string): Promise<number> {
    return Number((await this.#connection.run((client) => client.hget(key, name))) ?? 0);
  }

  /** Members of a sorted set whose scores are equal. */
  async idsAfter(key: string, after: string | undefined, limit: number): Promise<string[]> {
    const from = after === undefined ? "-" : `(${after}`;
    return await this.#connection.run((client) => client.zrangebylex(key, from, "+", "LIMIT", 0, limit));
  }

  /** Empty if the set is empty. */
  async lowestScore(key: string): Promise<string> {
    const [, score = ""] = await this.#connection.run((client) => client.zrange(key, "0", "0", "WITHSCORES"));
    return score;
  }

  /** The lowest score above another one. */
  async scoreAfter(key: string, after: number): Promise<number | undefined> {
    const range = [key, `(${after}`, "+inf", "BYSCORE", "LIMIT", 0, 1, "WITHSCORES"] as const;
    const [, score] = await this.#connection.run((client) => client.zrange(...range));
    return score === undefined ? undefined : Number(score);
  }

  /** A list and its version. */
  async listMembers({ rows }: TreeKeys, key: string, field: string): Promise<LoadedMembers> {
    return this.#collection(rows, key, field, "LRANGE", (texts) => texts);
  }

  /** The children of every agent of the tree, with all records; no children for an agent that is not stored yet. */
  async families({ rows, agents, tenant }: TreeKeys, agentId: string): Promise<LoadedMembers> {
    const answer = await this.#connection.script(familiesScript, [rows, agents], []);
    const [ids = [], records, versions] = Array.isArray(answer) ? answer.map((part: unknown) => textsOf(part)) : [];
    const stored = new Map(ids.map((id, index) => [fields.record(id), records?.[index] ?? ""]));
    const children = new Map<string, string[]>(ids.map((id) => [id, []]));
    for (const id of ids) {
      const record = valueOf(seenRow(stored.get(fields.record(id)) ?? ""), rowKinds.record(tenant, id), rows);
      if (record?.parentAgentId !== null) children.get(record?.parentAgentId ?? "")?.push(id);
    }
    const members = ids.map((id, index) => {
      const { version } = seenRow(versions?.[index] ?? "");
      return [fields.children(id), { version, value: children.get(id) ?? [] }] as const;
    });
    const found = new Map<string, { version: string; value: unknown }>(members);
    const asked = fields.children(agentId);
    if (!found.has(asked)) found.set(asked, { version: "", value: [] });
    return { members: found, rows: stored };
  }

  async artifactMembers({ rows }: TreeKeys, key: string, field: string): Promise<LoadedMembers> {
    return this.#collection(rows, key, field, "HGETALL", (texts) =>
      placedArtifacts(
        texts.filter((_, index) => index % 2 === 1),
        key,
      ),
    );
  }

  /** The waiters of one account, and the version of their queue. */
  async queueMembers({ rows, waiters }: TreeKeys, accountId: string): Promise<LoadedMembers> {
    return this.#collection(rows, waiters, fields.queue(accountId), "HGETALL", (texts) =>
      waitersIn(texts, accountId, waiters),
    );
  }

  async artifacts(key: string): Promise<PlacedArtifact[]> {
    return placedArtifacts(await this.#connection.run((client) => client.hvals(key)), key);
  }

  async artifactContent(key: string, artifactId: string): Promise<string> {
    const text = await this.#connection.run((client) => client.hget(key, artifactId));
    const where = `the content of artifact ${artifactId} (${key})`;
    if (text === null) throw new CorruptRecordError(`${where} is missing`);
    return parsed(contentSchema, text, where);
  }

  /** `undefined` if it was deleted in between. */
  async artifact(
    keys: { readonly artifacts: string; readonly contents: string },
    artifactId: string,
  ): Promise<Artifact | undefined> {
    const text = await this.#connection.run((client) => client.hget(keys.artifacts, artifactId));
    if (text === null) return undefined;
    const [placed] = placedArtifacts([text], keys.artifacts);
    return placed && { ...placed.meta, content: await this.artifactContent(keys.contents, artifactId) };
  }

  /** Also reads the record if it is not cached: a post changes it, and the reader's next transaction writes it. */
  async inbox(tree: TreeKeys, agentId: string): Promise<InboxItem[]> {
    const key = tree.ofAgent("inbox", agentId);
    const field = fields.record(agentId);
    if (!this.#known.lacks(tree, field)) return itemsIn(await this.#connection.run((client) => client.hvals(key)), key);
    const texts = textsOf(await this.#connection.script(inboxScript, [key, tree.rows], [field]));
    const record = texts.pop() ?? "";
    this.#known.note(tree, field, record === "" ? undefined : record);
    return itemsIn(texts, key);
  }

  /** `undefined` if the turn has more rows than the script returns. */
  async turnLook(tree: TreeKeys, { tenant, agentId }: AgentKey, turnId: string, after: number) {
    const { rows, journal } = tree;
    const [kind, ofAccount] = [rowKinds.record(tenant, agentId), rowKinds.account(turnAccountId(turnId))];
    const keys = [rows, journal, tree.ofAgent("index", agentId), tree.ofAgent("messages", agentId)];
    const args = [kind.field, ofAccount.field, after + 1, PAGE, turnId, JSON.stringify(turnId)];
    const found = textsOf(await this.#connection.script(turnLookScript, keys, args));
    const [stored = "", account = "", message] = found;
    const record = valueOf(this.#known.note(tree, kind.field, stored === "" ? undefined : stored), kind, rows);
    if (record && !isPast(record, turnId)) return { record, past: undefined };
    if (!record || message === undefined) return undefined;
    const own: Entry[] = [];
    let last: JournalRow | undefined;
    for (let at = 3; at < found.length; at += 3) {
      const [place = "", version = "", text = ""] = found.slice(at, at + 3);
      const row = readRow({ place, agentId, version, text }, journal);
      checkOrder(last, row, journal);
      last = row;
      for (const one of row.entries) if ("turnId" in one && one.turnId === turnId) own.push(one);
    }
    const id = answerIdOf(own);
    const answer = message === "" ? undefined : messageIn(message, keys[3] ?? "").message;
    if (own[0]?.type !== "turn.started" || id !== (answer?.id ?? null)) return undefined;
    const seen = account === "" ? undefined : valueOf(seenRow(account), ofAccount, rows);
    return { record, past: { entries: own, answer, account: seen } } satisfies StoredLook;
  }

  /** Rows of one agent, from the row that contains `fromSeq`. */
  async agentRows({ journal }: TreeKeys, index: string, agentId: string, fromSeq: number): Promise<JournalRow[]> {
    const found: JournalRow[] = [];
    for (let from = fromSeq; ; ) {
      const page = await this.#connection.script(agentRowsScript, [journal, index], [from, PAGE]);
      const rows = Array.isArray(page) ? page : [];
      for (const row of rows) {
        const [lastSeq, entry]: unknown[] = Array.isArray(row) ? row : [];
        if (!Array.isArray(entry)) {
          throw new CorruptRecordError(
            `the journal ${journal} lacks the row of agent ${agentId} with entry ${String(lastSeq)}`,
          );
        }
        const next = journalRowOf(entry, journal);
        checkOrder(found.at(-1), next, journal);
        found.push(next);
        from = Number(lastSeq) + 1;
      }
      if (rows.length < PAGE) return found;
    }
  }

  async newestRow({ journal }: TreeKeys, index: string): Promise<JournalRow | undefined> {
    const [cursor] = await this.#connection.run((client) => client.zrange(index, "-1", "-1"));
    if (cursor === undefined) return undefined;
    const id = `${cursor}-0`;
    const [entry] = await this.#connection.run((client) => client.xrange(journal, id, id));
    return entry && journalRowOf(entry, journal);
  }

  async treeRows({ journal }: TreeKeys, afterCursor: number, limit: number): Promise<JournalRow[]> {
    const found: JournalRow[] = [];
    for (let after = afterCursor; found.length < limit; ) {
      const count = Math.min(PAGE, limit - found.length);
      const page = await this.#connection.run((client) => client.xrange(journal, `(${after}-0`, "+", "COUNT", count));
      for (const entry of page) found.push(journalRowOf(entry, journal));
      if (page.length < count) break;
      after = found.at(-1)?.cursor ?? after;
    }
    return found;
  }

  /** Oldest first; `newest` limits the result to the newest messages. */
  async messages(
    keys: { readonly messages: string; readonly order: string },
    newest?: number,
  ): Promise<StoredMessage[]> {
    if (newest === 0) return [];
    const ids = await this.#connection.run((client) =>
      client.lrange(keys.order, newest === undefined ? 0 : -newest, -1),
    );
    return this.messagesById(keys.messages, ids);
  }

  async messagesById(key: string, ids: readonly string[]): Promise<StoredMessage[]> {
    const found: StoredMessage[] = [];
    for (let at = 0; at < ids.length; at += PAGE) {
      const texts = await this.#connection.run((client) => client.hmget(key, ...ids.slice(at, at + PAGE)));
      for (const text of texts) if (text !== null) found.push(messageIn(text, key));
    }
    return found;
  }

  /** `undefined` if no such turn is stored. */
  async turn({ turns }: TreeKeys, turnId: string): Promise<TurnRecord | undefined> {
    const [opened, changed] = await this.#connection.run((client) => client.hmget(turns, ...turnFields(turnId)));
    if (opened === null || opened === undefined) return undefined;
    const { hash: _hash, ...turn } = turnIn(opened, changed, turns);
    return turn;
  }

  /** The tree's timers up to this time, earliest first, and the time of its first timer ("" if there is none). */
  async timersUntil({ due, timers }: TreeKeys, time: number): Promise<{ first: string; timers: Timer[] }> {
    const answer: unknown = await this.#connection.script(timersScript, [due, timers], [time]);
    const [first, texts]: unknown[] = Array.isArray(answer) ? answer : [];
    return { first: typeof first === "string" ? first : "", timers: dueTimersIn(textsOf(texts), timers) };
  }

  async timer({ timers }: TreeKeys, id: string): Promise<Timer | undefined> {
    const text = await this.#connection.run((client) => client.hget(timers, id));
    return text === null ? undefined : timerIn(text, timers);
  }

  async #collection(
    rows: string,
    key: string,
    field: string,
    command: "LRANGE" | "HGETALL",
    read: (texts: string[]) => unknown,
  ): Promise<LoadedMembers> {
    const answer = await this.#connection.script(collectionScript, [rows, key], [field, command]);
    const [version, members]: unknown[] = Array.isArray(answer) ? answer : [];
    const seen = {
      version: typeof version === "string" ? seenRow(version).version : "",
      value: read(textsOf(members)),
    };
    return { members: new Map([[field, seen]]) };
  }
}

function messageIn(stored: string, key: string): StoredMessage {
  const where = `a message (${key})`;
  const { ordinal, text } = ordered(stored, where);
  return { cursor: ordinal, message: parsed(messageSchema, text, where) };
}
