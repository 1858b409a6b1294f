import { accountSchema, waiterSchema } from "../../budget/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import {
  type AgentRecord,
  agentRecordSchema,
  type AgentRequest,
  agentRequestSchema,
  type InboxItem,
  inboxItemSchema,
} from "../../state/index.ts";
import {
  integerOf,
  parsed,
  plainOutcome,
  type Row,
  storedOutcomeSchema,
  textColumn,
  textOrNullOf,
} from "../rules/stored-values.ts";
import type { Head, Work } from "../rules/tables.ts";
import { prepared, type Query, type Statement } from "../../postgres/index.ts";
import { type HeadRow, Lazy, type LiveKind, type TreeCache, type Wanted } from "./postgres-session.ts";
import { columnsOf, columnText, textOfColumn, type TreeName } from "./postgres-text.ts";

/** A tree with at most this many agents is loaded completely. */
const FEW_AGENTS = 64;

export const headColumns = "epoch, holder, seq, at, sign, batch_id, open_requests, work, outcome";

/** All rows have the same columns; those of a kind that has fewer are null. */
function statementOf(schema: string): Statement {
  const table = (name: string): string => `"${schema}".${name}`;
  const noHead = "null, null, null, null, null, null, null, null, null";
  return prepared(
    `WITH t AS (SELECT *, agents <= ${FEW_AGENTS} AS is_small FROM ${table("trees")} WHERE tenant = $1::text AND root = $2::text)
    SELECT 'tree' AS kind, writer AS id, null AS sub, id AS n, null AS body, version AS epoch, null AS holder,
      last_cursor AS seq, agents::bigint AS at, write_no AS sign, null AS batch_id, imports AS open_requests,
      null AS work, null AS outcome
      FROM t
    UNION ALL SELECT 'receipt', r.writer, null, r.write_no, null, ${noHead}
      FROM t JOIN ${table("receipts")} AS r ON r.tree = t.id WHERE r.writer = $3::text
    UNION ALL SELECT 'agent', agent_id, parent, n, record, ${headColumns}
      FROM t JOIN ${table("agents")} AS r ON r.tree = t.id LEFT JOIN ${table("heads")} AS h USING (tree, agent_id)
      WHERE is_small OR r.agent_id = ANY($4::text[]) OR r.parent = ANY($5::text[])
    UNION ALL SELECT 'item', r.agent_id, item_key, n, item, ${noHead}
      FROM t JOIN ${table("inbox")} AS r ON r.tree = t.id WHERE is_small OR r.agent_id = ANY($4::text[])
    UNION ALL SELECT 'request', r.agent_id, request_id, opened_at, request, ${noHead}
      FROM t JOIN ${table("requests")} AS r ON r.tree = t.id
      WHERE status = 'open' AND (is_small OR r.agent_id = ANY($4::text[]))
    UNION ALL SELECT 'account', account_id, null, n, account, ${noHead}
      FROM t JOIN ${table("accounts")} AS r ON r.tree = t.id
      WHERE is_small OR $7::boolean OR r.account_id = ANY($6::text[])
    UNION ALL SELECT 'waiter', account_id, ask_key, position, waiter, ${noHead}
      FROM t JOIN ${table("waiters")} AS r ON r.tree = t.id
      WHERE is_small OR $7::boolean OR r.account_id = ANY($6::text[])
    ORDER BY kind, n`,
  );
}

/** Loads rows of a tree, all of them at one moment. Rows of other versions are dropped from the cache. */
export async function loadRows(
  query: Query,
  { schema, writer, tree }: { readonly schema: string; readonly writer: string; readonly tree: TreeName },
  cache: TreeCache,
  wanted: Wanted,
): Promise<void> {
  const { agents = [], parents = [], accounts = [], allAccounts = false } = wanted;
  const rows = await query(statementOf(schema), [
    ...columnsOf(tree),
    writer,
    agents.map((id) => columnText(id, "agent id")),
    parents.map((id) => columnText(id, "agent id")),
    accounts.map((id) => columnText(id, "account id")),
    allAccounts,
  ]);
  const state = rows.find((row) => row["kind"] === "tree");
  if (!state) {
    cache.forget();
    Object.assign(cache, { id: undefined, version: 0, lastCursor: 0, agents: 0, imports: 0, writer: "", writeNo: 0 });
    cache.ownWrite = 0;
    return;
  }
  const where = `the tree ${tree.tag}`;
  const version = integerOf(state, "epoch", where);
  if (cache.version !== version) cache.forget();
  const imports = integerOf(state, "open_requests", where);
  // A replaced tree may be an older one.
  if (cache.imports !== imports) cache.seen.clear();
  cache.id = integerOf(state, "n", where);
  cache.version = version;
  cache.lastCursor = integerOf(state, "seq", where);
  cache.agents = integerOf(state, "at", where);
  cache.imports = imports;
  cache.writer = textColumn(state, "id", where);
  cache.writeNo = integerOf(state, "sign", where);
  const receipt = rows.find((row) => row["kind"] === "receipt");
  cache.ownWrite = cache.writer === writer ? cache.writeNo : receipt === undefined ? 0 : integerOf(receipt, "n", where);
  cache.isWhole = cache.agents <= FEW_AGENTS;
  fill(cache, tree, rows, wanted);
}

function fill(cache: TreeCache, { tenant }: TreeName, rows: readonly Row[], wanted: Wanted): void {
  const put = (kind: LiveKind, id: string, value: unknown): void => void cache.rows.set(`${kind}|${id}`, value);
  const { agents = [], parents = [], accounts = [], allAccounts = false } = wanted;
  const children = new Map<string, string[]>(parents.map((id) => [id, []]));
  for (const id of agents) for (const kind of ["agent", "head"] as const) put(kind, id, undefined);
  for (const id of accounts) put("account", id, undefined);
  const items = new Map<string, Row[]>(agents.map((id) => [id, []]));
  const open = new Map<string, Row[]>(agents.map((id) => [id, []]));
  const waiters = new Map<string, Row[]>(accounts.map((id) => [id, []]));
  const accountIds: string[] = [];
  for (const row of rows) {
    const id = textOfColumn(textColumn(row, "id", "a row of the tree"));
    if (row["kind"] === "agent") {
      put("agent", id, new Lazy(() => recordIn(row, { tenant, agentId: id })));
      if (row["epoch"] !== null) put("head", id, new Lazy(() => headIn(row, id)));
      const parent = textOrNullOf(row, "sub", `agent ${id}`);
      if (parent !== null && (cache.isWhole || parents.includes(textOfColumn(parent)))) {
        listOf(children, textOfColumn(parent)).push(id);
      }
    } else if (row["kind"] === "item") listOf(items, id).push(row);
    else if (row["kind"] === "request") listOf(open, id).push(row);
    else if (row["kind"] === "account") {
      put("account", id, new Lazy(() => accountIn(row, id)));
      accountIds.push(id);
      if (allAccounts) listOf(waiters, id);
    } else if (row["kind"] === "waiter") listOf(waiters, id).push(row);
  }
  for (const [id, ids] of children) put("children", id, { value: ids });
  for (const [id, ofAgent] of items) put("inbox", id, new Lazy(() => itemsIn(ofAgent, id)));
  for (const [id, ofAgent] of open) put("open", id, new Lazy(() => requestsIn(ofAgent)));
  for (const [id, ofAccount] of waiters) put("waiters", id, new Lazy(() => waitersIn(ofAccount, id)));
  if (cache.isWhole || allAccounts) put("accounts", "", { value: accountIds });
}

function listOf<T>(lists: Map<string, T[]>, id: string): T[] {
  const known = lists.get(id);
  if (known) return known;
  const list: T[] = [];
  lists.set(id, list);
  return list;
}

export function recordIn(
  row: Row,
  { tenant, agentId }: { readonly tenant: string; readonly agentId: string },
  column = "body",
): AgentRecord {
  const where = `the record of agent ${agentId}`;
  const record = parsed(agentRecordSchema, textColumn(row, column, where), where);
  if (record.agentId === agentId && record.tenant === tenant) return record;
  throw new CorruptRecordError(`${where} is that of agent ${record.agentId}; it is not changed`);
}

export function headIn(row: Row, agentId: string): HeadRow {
  const where = `the head of agent ${agentId}`;
  const holder = textOrNullOf(row, "holder", where);
  const batchId = textOrNullOf(row, "batch_id", where);
  const head: Head = {
    epoch: integerOf(row, "epoch", where),
    holder: holder === null ? null : textOfColumn(holder),
    seq: integerOf(row, "seq", where),
    at: integerOf(row, "at", where),
    sign: integerOf(row, "sign", where),
    batchId: batchId === null ? null : textOfColumn(batchId),
    openRequests: integerOf(row, "open_requests", where),
    work: workIn(textColumn(row, "work", where), where),
  };
  const outcome = textOrNullOf(row, "outcome", where);
  return {
    head,
    outcome:
      outcome === null
        ? { value: plainOutcome }
        : new Lazy(() => parsed(storedOutcomeSchema, outcome, `${where}: its outcome`)),
  };
}

function workIn(work: string, where: string): Work {
  if (work === "none" || work === "open" || work === "parked") return work;
  throw new CorruptRecordError(`${where}: the column work holds ${JSON.stringify(work)}; it is not changed`);
}

export function accountIn(row: Row, id: string) {
  const account = parsed(accountSchema, textColumn(row, "body", `account ${id}`), `account ${id}`);
  if (account.id === id) return account;
  throw new CorruptRecordError(`the row of account ${id} holds account ${account.id}; it is not changed`);
}

export function itemsIn(rows: readonly Row[], agentId: string): ReadonlyMap<string, InboxItem> {
  const where = `the inbox of agent ${agentId}`;
  return new Map(
    rows.map((row) => [
      textOfColumn(textColumn(row, "sub", where)),
      parsed(inboxItemSchema, textColumn(row, "body", where), where),
    ]),
  );
}

export function requestsIn(rows: readonly Row[]): ReadonlyMap<string, AgentRequest> {
  return new Map(rows.map((row) => requestIn(row)).map((request) => [request.requestId, request]));
}

/** From the columns `sub` and `body`. */
export function requestIn(row: Row): AgentRequest {
  const id = textOfColumn(textColumn(row, "sub", "a request"));
  const request = parsed(agentRequestSchema, textColumn(row, "body", `request ${id}`), `request ${id}`);
  if (request.requestId === id) return request;
  throw new CorruptRecordError(`the row of request ${id} holds request ${request.requestId}; it is not changed`);
}

export function waitersIn(rows: readonly Row[], accountId: string) {
  const where = `the waiters of account ${accountId}`;
  return rows.map((row) => parsed(waiterSchema, textColumn(row, "body", where), where));
}
