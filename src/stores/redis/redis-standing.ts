import { StoreUnavailableError } from "../../errors/index.ts";
import { type InboxItem, inboxItemSchema } from "../../state/index.ts";
import type { RedisConnection } from "./redis-connection.ts";
import type { TreeKeys } from "./redis-keys.ts";
import { standingScript } from "./redis-read-scripts.ts";
import { textsOf } from "./redis-replies.ts";
import { type RowKind, rowKinds, seenRow, valueOf } from "./redis-rows.ts";
import { ordered } from "./redis-stored.ts";
import { parsed } from "../rules/stored-json.ts";
import type { TreeStanding } from "../rules/tree-standing.ts";

/** How often more agents may turn out to have an open turn than those whose inboxes were read. */
const ATTEMPTS = 20;

/** Everything comes out of one script, so that it belongs together; whose inboxes matter is known from the time before. */
export async function readStanding(connection: RedisConnection, tree: TreeKeys): Promise<TreeStanding | undefined> {
  let asked: readonly string[] = [];
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const keys = [tree.rows, tree.open, tree.agents, tree.accounts];
    const inboxKeys = asked.map((agentId) => tree.ofAgent("inbox", agentId));
    const answer: unknown = await connection.script(standingScript, [...keys, ...inboxKeys], []);
    const parts: readonly unknown[] = Array.isArray(answer) ? answer : [];
    if (parts.length === 0) return undefined;
    const standing = standingIn(tree, parts, asked);
    const atWork = standing.agents.filter(({ openTurnId }) => openTurnId !== null).map(({ agentId }) => agentId);
    if (atWork.every((agentId) => standing.inboxes.has(agentId))) return standing;
    asked = atWork;
  }
  throw new StoreUnavailableError(`turns of the tree ${tree.tag} were opened while it was read, ${ATTEMPTS} times`, {
    details: { code: "CONTENDED" },
  });
}

function standingIn(tree: TreeKeys, parts: readonly unknown[], asked: readonly string[]): TreeStanding {
  const rows = <T>(ids: unknown, stored: unknown, kindOf: (id: string) => RowKind<T>): T[] => {
    const texts = textsOf(stored);
    return textsOf(ids).flatMap((id, index) => {
      const text = texts[index];
      return text ? (valueOf(seenRow(text), kindOf(id), tree.rows) ?? []) : [];
    });
  };
  const [open, requests, agentIds, records, accountIds, accounts, ...inboxes] = parts;
  return {
    openRequests: rows(open, requests, (member) => {
      const [requestId = "", agentId = ""] = JSON.parse(member) as readonly string[];
      return rowKinds.request(agentId, requestId);
    }),
    agents: rows(agentIds, records, (id) => rowKinds.record(tree.tenant, id)),
    accounts: rows(accountIds, accounts, (id) => rowKinds.account(id)),
    inboxes: new Map(
      asked.map((agentId, index) => [agentId, itemsIn(textsOf(inboxes[index]), tree.ofAgent("inbox", agentId))]),
    ),
  };
}

export function itemsIn(texts: readonly string[], key: string): InboxItem[] {
  const where = `the inbox (${key})`;
  return texts
    .map((text) => ordered(text, where))
    .sort((a, b) => a.ordinal - b.ordinal)
    .map(({ text }) => parsed(inboxItemSchema, text, where));
}
