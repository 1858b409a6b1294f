import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import type { RedisConnection } from "./redis-connection.ts";
import type { TreeKeys } from "./redis-keys.ts";
import { headsScript, inboxesScript } from "./redis-read-scripts.ts";
import type { RedisReader } from "./redis-reader.ts";
import { textsOf } from "./redis-replies.ts";
import { rowKinds, seenRow, valueOf } from "./redis-rows.ts";
import { itemsIn } from "./redis-standing.ts";
import { freshHead, type Head } from "../rules/tables.ts";
import { needsSomebody } from "../rules/unattended.ts";

/** Inboxes that are read at once. */
const INBOXES = 500;

/** The agents of a tree that somebody has to take up, in the order in which they were made. */
export async function restlessOf(
  connection: RedisConnection,
  reader: RedisReader,
  tree: TreeKeys,
  isLiving: (processId: string) => boolean,
): Promise<readonly string[]> {
  const [ids = [], stored = []] = listsOf(await connection.script(headsScript, [tree.rows, tree.agents], []));
  const heads = new Map<string, Head>();
  for (const [index, id] of ids.entries()) {
    const text = stored[index] ?? "";
    const head = text === "" ? freshHead : (valueOf(seenRow(text), rowKinds.head(id), tree.rows)?.head ?? freshHead);
    if (head.holder === null || !isLiving(head.holder)) heads.set(id, head);
  }
  const inboxes = await inboxesOf(connection, tree, [...heads.keys()]);
  const restless = [...heads].filter(([id, { work }]) => work === "open" || inboxes.has(id));
  const records = await withAncestors(
    reader,
    tree,
    restless.map(([id]) => id),
  );
  const tables = { agent: ({ agentId }: AgentKey) => records.get(agentId) };
  return restless.flatMap(([id, head]) => {
    const record = records.get(id);
    return record && needsSomebody(tables, { record, head, inbox: inboxes.get(id) ?? [] }) ? [id] : [];
  });
}

/** Of those that hold something. */
async function inboxesOf(
  connection: RedisConnection,
  tree: TreeKeys,
  ids: readonly string[],
): Promise<Map<string, InboxItem[]>> {
  const found = new Map<string, InboxItem[]>();
  for (let at = 0; at < ids.length; at += INBOXES) {
    const some = ids.slice(at, at + INBOXES);
    const keys = some.map((id) => tree.ofAgent("inbox", id));
    const inboxes = listsOf(await connection.script(inboxesScript, keys, []));
    for (const [index, id] of some.entries()) {
      const texts = inboxes[index] ?? [];
      if (texts.length > 0) found.set(id, itemsIn(texts, keys[index] ?? ""));
    }
  }
  return found;
}

/** Their records, and those of all above them: a mark may stand there. */
async function withAncestors(
  reader: RedisReader,
  tree: TreeKeys,
  ids: readonly string[],
): Promise<ReadonlyMap<string, AgentRecord>> {
  const records = new Map<string, AgentRecord>();
  for (let wanted = [...ids]; wanted.length > 0; ) {
    const found = await reader.rows(
      tree,
      wanted.map((id) => rowKinds.record(tree.tenant, id)),
    );
    for (const record of found) records.set(record.agentId, record);
    const parents = found.flatMap(({ parentAgentId }) => parentAgentId ?? []);
    wanted = [...new Set(parents)].filter((id) => !records.has(id));
  }
  return records;
}

function listsOf(answer: unknown): string[][] {
  return Array.isArray(answer) ? answer.map((part: unknown) => textsOf(part)) : [];
}
