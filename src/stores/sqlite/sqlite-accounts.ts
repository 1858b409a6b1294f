import { z } from "zod";
import type { DeepReadonly } from "../../base/index.ts";
import {
  type Account,
  accountSchema,
  type Amounts,
  type ModelUse,
  type Waiter,
  waiterSchema,
} from "../../budget/index.ts";
import { InvariantError } from "../../errors/index.ts";
import { type AgentKey, agentOfAccount } from "../../state/index.ts";
import { integerOf, parsed, type Row, textOf, wellFormed } from "../rules/stored-values.ts";
import type { WaiterChanges } from "../rules/tables.ts";
import { KeyedCache } from "./keyed-cache.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { SqliteNewTrees } from "./sqlite-new-trees.ts";
import type { Statement } from "./sqlite-statement.ts";

interface AccountSlot {
  place: number;
  /** The generation in which the slot was last known to match the file. */
  generation: number;
  texts: AccountTexts;
  value: Account;
  /** The account's waiters at one revision of the queue. */
  queue?: { readonly revision: string | undefined; readonly waiters: readonly Waiter[] };
}

const CAPACITY = 8000;
/** More places than the agents and accounts of a tree ever need; with 2^29 agents the places are still exact numbers. */
const PLACES_OF_A_TREE = 2 ** 24;

/** A tree's rows of `standings` are contiguous, so that a commit that changes several of them writes one page. */
export function placesOfTree(tree: number): { readonly first: number; readonly last: number } {
  const first = tree * PLACES_OF_A_TREE;
  return { first, last: first + PLACES_OF_A_TREE - 1 };
}

/** The next free place of a tree. */
export class SqlitePlaces {
  readonly #connection: SqliteConnection;
  readonly #next: Statement;
  /** The last place that was given out, by tree, in a generation. */
  readonly #given = new Map<number, { readonly generation: number; readonly place: number }>();

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#next = connection.prepare(
      "SELECT coalesce(max(place) + 1, $first) AS place FROM standings WHERE place BETWEEN $first AND $last",
    );
  }

  forget(): void {
    this.#given.clear();
  }

  forgetTree(tree: number): void {
    this.#given.delete(tree);
  }

  /** That of a new tree's first agent. */
  first(tree: number): number {
    const { first } = placesOfTree(tree);
    this.#give(tree, first);
    return first;
  }

  /** Must be filled in the same transaction. */
  next(tree: number): number {
    const { generation } = this.#connection;
    const given = this.#given.get(tree);
    const place =
      given?.generation === generation
        ? given.place + 1
        : integerOf(this.#next.get({ ...placesOfTree(tree) }) ?? {}, "place", "the next place of a tree");
    this.#give(tree, place);
    return place;
  }

  #give(tree: number, place: number): void {
    if (this.#given.size >= CAPACITY) this.#given.clear();
    this.#given.set(tree, { generation: this.#connection.generation, place });
  }
}

export class SqliteAccounts {
  readonly #connection: SqliteConnection;
  readonly #slots = new KeyedCache<AccountSlot>(CAPACITY);
  readonly #places: SqlitePlaces;
  readonly #newTrees: SqliteNewTrees;
  /** The account that was last looked for in vain, in a generation: it mostly is the next one to be put. */
  #missing = { generation: 0, tenant: "", accountId: "" };
  readonly #statements: Readonly<
    Record<
      | "read"
      | "insert"
      | "insertFigures"
      | "update"
      | "move"
      | "ofTree"
      | "remove"
      | "removeFigures"
      | "queue"
      | "putWaiter"
      | "removeWaiter"
      | "removeWaiters",
      Statement
    >
  >;

  constructor(connection: SqliteConnection, places: SqlitePlaces, newTrees: SqliteNewTrees) {
    this.#connection = connection;
    this.#places = places;
    this.#newTrees = newTrees;
    this.#statements = {
      read: connection.prepare(
        `SELECT accounts.place, terms, standing FROM accounts JOIN standings ON standings.place = accounts.place
         WHERE tenant = ? AND accounts.account_id = ?`,
      ),
      insert: connection.prepare("INSERT INTO accounts VALUES (?, ?, ?)"),
      insertFigures: connection.prepare(
        "INSERT INTO standings (place, account_id, terms, standing) VALUES (?, ?, ?, ?)",
      ),
      update: connection.prepare("UPDATE standings SET standing = ? WHERE place = ?", ["standing"]),
      move: connection.prepare("UPDATE standings SET terms = ?, standing = ? WHERE place = ?", ["terms", "standing"]),
      ofTree: connection.prepare(
        `SELECT account_id, terms, standing FROM standings
         WHERE place BETWEEN ? AND ? AND account_id IS NOT NULL ORDER BY place`,
      ),
      remove: connection.prepare(
        `DELETE FROM accounts WHERE tenant = ? AND account_id IN
           (SELECT account_id FROM standings WHERE place BETWEEN ? AND ? AND account_id IS NOT NULL)`,
      ),
      removeFigures: connection.prepare("DELETE FROM standings WHERE place BETWEEN ? AND ?"),
      removeWaiters: connection.prepare("DELETE FROM waiters WHERE account BETWEEN ? AND ?"),
      queue: connection.prepare("SELECT waiter FROM waiters WHERE account = ? ORDER BY place"),
      putWaiter: connection.prepare(
        `INSERT INTO waiters (account, ask_key, place, waiter) VALUES (?, ?, ?, ?)
         ON CONFLICT (account, ask_key) DO UPDATE SET place = excluded.place, waiter = excluded.waiter`,
      ),
      removeWaiter: connection.prepare("DELETE FROM waiters WHERE account = ? AND ask_key = ?"),
    };
  }

  forget(): void {
    this.#slots.clear();
    this.#missing.generation = 0;
  }

  rest(keys: readonly AgentKey[]): void {
    this.#slots.dropTrees(keys, agentOfAccount);
  }

  find(tenant: string, accountId: string): Account | undefined {
    return this.#slot(tenant, accountId)?.value;
  }

  put(tenant: string, tree: () => number, account: Account): void {
    const figures = figuresText(account);
    const { generation } = this.#connection;
    this.#connection.noteRow(rowName(tenant, account.id));
    const known = this.#slot(tenant, account.id);
    if (known) {
      let { terms } = known.texts;
      if (hasSameTerms(known.value, account)) this.#statements.update.run(figures, known.place);
      else {
        terms = termsText(account);
        this.#statements.move.run(terms, figures, known.place);
      }
      Object.assign(known, { generation, texts: { terms, figures }, value: account });
      return;
    }
    this.#missing.generation = 0;
    const place = this.#places.next(tree());
    const terms = termsText(account);
    this.#statements.insert.run(tenant, account.id, place);
    this.#statements.insertFigures.run(place, account.id, terms, figures);
    this.#keep(tenant, account.id, { place, generation, texts: { terms, figures }, value: account });
  }

  waiters(tenant: string, account: Account): readonly Waiter[] {
    const slot = this.#slot(tenant, account.id);
    if (!slot) return [];
    const revision = account.line?.revision;
    if (slot.queue && slot.queue.revision === revision) return slot.queue.waiters;
    const where = `the waiters of account ${account.id}`;
    const rows = this.#statements.queue.all(slot.place);
    const waiters = rows.map((row) => parsed(waiterSchema, textOf(row, "waiter", where), where));
    slot.queue = { revision, waiters };
    return waiters;
  }

  putWaiters(tenant: string, tree: () => number, { account, waiters, put, removed }: WaiterChanges): void {
    let slot = this.#slot(tenant, account.id);
    if (!slot) {
      this.put(tenant, tree, account);
      slot = this.#slot(tenant, account.id);
    }
    if (!slot) throw new InvariantError(`the account ${account.id} was put, and is not there`);
    for (const key of removed) this.#statements.removeWaiter.run(slot.place, wellFormed(key, "key of an ask"));
    for (const waiter of put) {
      const key = wellFormed(waiter.ask.key, "key of an ask");
      this.#statements.putWaiter.run(slot.place, key, waiter.place, JSON.stringify(waiter));
    }
    slot.queue = { revision: account.line?.revision, waiters };
  }

  ofTree(tree: number): Account[] {
    const { first, last } = placesOfTree(tree);
    return this.#statements.ofTree.all(first, last).map((row) => {
      const id = textOf(row, "account_id", "an account of the tree");
      return accountIn(id, textsIn(row, id));
    });
  }

  /** Also removes the heads of the tree's agents. */
  removeTree(tenant: string, tree: number): void {
    const { first, last } = placesOfTree(tree);
    this.#statements.removeWaiters.run(first, last);
    this.#statements.remove.run(tenant, first, last);
    this.#statements.removeFigures.run(first, last);
  }

  #slot(tenant: string, accountId: string): AccountSlot | undefined {
    const known = this.#slots.get(tenant, accountId);
    const { generation, isInTransaction } = this.#connection;
    if (known && isInTransaction && known.generation === generation) return known;
    const missing = this.#missing;
    const isMissing = missing.accountId === accountId && missing.tenant === tenant;
    if (isMissing && isInTransaction && missing.generation === generation) return undefined;
    if (!known && this.#newTrees.has(tenant, agentOfAccount(accountId))) return undefined;
    const values = [wellFormed(tenant, "tenant"), wellFormed(accountId, "account id")] as const;
    const { read } = this.#statements;
    const isLater = this.#connection.isLater(rowName(tenant, accountId));
    const row = isLater ? read.get(...values) : read.getAside(...values);
    if (!row) {
      this.#missing = { generation: isInTransaction ? generation : 0, tenant, accountId };
      return undefined;
    }
    const texts = textsIn(row, accountId);
    const place = integerOf(row, "place", `account ${accountId}`);
    if (known) {
      const isSame = known.texts.figures === texts.figures && known.texts.terms === texts.terms;
      if (!isSame) known.value = accountIn(accountId, texts);
      return Object.assign(known, { place, generation, texts });
    }
    const slot = { place, generation, texts, value: accountIn(accountId, texts) };
    this.#keep(tenant, accountId, slot);
    return slot;
  }

  #keep(tenant: string, accountId: string, slot: AccountSlot): void {
    if (this.#slots.set(tenant, accountId, slot)) this.#newTrees.forget();
  }
}

function rowName(tenant: string, accountId: string): string {
  return `account ${JSON.stringify([tenant, accountId])}`;
}

function textsIn(row: Row, accountId: string): AccountTexts {
  const where = `account ${accountId}`;
  return { terms: textOf(row, "terms", where), figures: textOf(row, "standing", where) };
}

/**
 * An account as two texts: the terms, which hardly ever change, and the figures, which are short because every commit
 * writes them.
 */
interface AccountTexts {
  readonly terms: string;
  readonly figures: string;
}

const { isActive, activeCount, activeSince, warned, line: lineOption } = accountSchema.shape;
const termsSchema = accountSchema.pick({
  agentId: true,
  turnId: true,
  parentId: true,
  limits: true,
  firstLimits: true,
  openedAt: true,
});

const count = z.number().int().nonnegative();
const amountFiguresSchema = z.tuple([count, count, count, count, count, count, count]);
const useFiguresSchema = z.tuple([count, count, count, count, count, count, count, count, count], count);
const pairSchema = z.tuple([count, count]);
const figuresSchema = z.tuple([
  amountFiguresSchema,
  pairSchema,
  pairSchema,
  z.record(z.string(), useFiguresSchema),
  isActive,
  activeCount,
  activeSince,
  warned,
  lineOption.unwrap().nullable(),
]);
type AmountFigures = DeepReadonly<z.infer<typeof amountFiguresSchema>>;

/** They change only when the account is moved, or gets other limits. */
function termsText({ agentId, turnId, parentId, limits, firstLimits, openedAt }: Account): string {
  return JSON.stringify({ agentId, turnId, parentId, limits, firstLimits, openedAt });
}

/**
 * Whether two states of one account certainly have the same terms. Limits stay the same object until they are changed, and the first
 * ones change only with them.
 */
function hasSameTerms(one: Account, other: Account): boolean {
  return (
    one.limits === other.limits &&
    one.parentId === other.parentId &&
    one.agentId === other.agentId &&
    one.turnId === other.turnId &&
    one.openedAt === other.openedAt
  );
}

/**
 * Everything that is not in the terms; figures are written without names, in the order of `figuresSchema`. Put together by hand,
 * since every commit of a turn writes them.
 */
function figuresText({ used, reserved, unconfirmed, models, ...account }: Account): string {
  const { steps, treeSteps, toolCalls, treeToolCalls, tokens, costMicros, activeMs } = used;
  let uses = "";
  for (const name in models) {
    const use = models[name];
    if (use !== undefined) uses += `${uses === "" ? "" : ","}${JSON.stringify(name)}:[${useFigures(use).join()}]`;
  }
  const { isActive, activeCount, activeSince, warned, line } = account;
  const amounts = `${steps},${treeSteps},${toolCalls},${treeToolCalls},${tokens},${costMicros},${activeMs}`;
  const bound = `[${reserved.tokens},${reserved.costMicros}],[${unconfirmed.tokens},${unconfirmed.costMicros}]`;
  const warnings = warned.length === 0 ? "[]" : JSON.stringify(warned);
  const state = `${isActive},${activeCount},${activeSince},${warnings},${line === undefined ? null : JSON.stringify(line)}`;
  return `[[${amounts}],${bound},{${uses}},${state}]`;
}

/** Throws `CorruptRecordError` if the texts are not those of an account. */
function accountIn(id: string, { terms, figures }: AccountTexts): Account {
  const where = `account ${id}`;
  const [used, reserved, unconfirmed, uses, ...rest] = parsed(figuresSchema, figures, where);
  const [isActive, activeCount, activeSince, warned, line] = rest;
  return {
    id,
    ...parsed(termsSchema, terms, where),
    used: amountsIn(used),
    reserved: { tokens: reserved[0], costMicros: reserved[1] },
    unconfirmed: { tokens: unconfirmed[0], costMicros: unconfirmed[1] },
    models: Object.fromEntries(Object.entries(uses).map(([name, figures]) => [name, useIn(figures)])),
    isActive,
    activeCount,
    activeSince,
    warned,
    ...(line ? { line } : {}),
  };
}

function amountsIn([steps, treeSteps, toolCalls, treeToolCalls, tokens, costMicros, activeMs]: AmountFigures): Amounts {
  return { steps, treeSteps, toolCalls, treeToolCalls, tokens, costMicros, activeMs };
}

type UseFigures = DeepReadonly<z.infer<typeof useFiguresSchema>>;

function useFigures(use: ModelUse): UseFigures {
  const { calls, inputTokens, outputTokens, cachedInputTokens, reasoningTokens, costMicros } = use;
  const { estimatedCalls, unconfirmedCalls, unpricedCalls, cacheWriteTokens } = use;
  const tokens = [inputTokens, outputTokens, cachedInputTokens, reasoningTokens] as const;
  return [calls, ...tokens, costMicros, estimatedCalls, unconfirmedCalls, unpricedCalls, cacheWriteTokens];
}

function useIn([calls, inputTokens, outputTokens, cachedInputTokens, reasoningTokens, ...more]: UseFigures): ModelUse {
  // What was stored before cache writes were counted has none.
  const [costMicros, estimatedCalls, unconfirmedCalls, unpricedCalls, cacheWriteTokens = 0] = more;
  const tokens = { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens };
  return { calls, ...tokens, costMicros, estimatedCalls, unconfirmedCalls, unpricedCalls };
}
