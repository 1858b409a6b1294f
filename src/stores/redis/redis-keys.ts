import { InvalidInputError } from "../../errors/index.ts";
import { rootOf } from "../../state/index.ts";
import { wellFormed } from "../rules/stored-values.ts";

/** The data of an agent with separate keys. */
export const agentParts = ["inbox", "artifacts", "contents", "messages", "order", "index"] as const;
type AgentPart = (typeof agentParts)[number];

/** The keys that are deleted with a tree; versions, cursors and cursors of projections are kept. */
export const treeParts = [
  "rows",
  "journal",
  "agents",
  "accounts",
  "waiters",
  "requests",
  "open",
  "turns",
  "changes",
  "definitions",
  "timers",
  "due",
] as const;

/** The number of partitions of each index over trees. It must not change, because keys depend on it. */
export const PARTITIONS = 16;

/**
 * The indexes over trees. Agents by id: all, the roots, by session, by owner. Roots by age. Requests by opening: all, and the open ones;
 * each also by owner. Turns by their last change: all, by owner, by session, and the unfinished ones. Trees by their first timer. Trees
 * by when their webhooks are due. Trees in which an item was posted. Trees by the processes that hold their agents.
 */
export type IndexName =
  | "agents"
  | "roots"
  | "newest"
  | "session"
  | "owner"
  | "requests"
  | "open"
  | "turns"
  | "unfinished"
  | "timers"
  | "webhooks"
  | "posts"
  | "holders";

export interface IndexKeys {
  readonly list: string;
  readonly stamps: string;
}

const GROUPS_KEPT = 10_000;
/** Takes the place of a root agent in the tag of a tenant's schedules. */
const schedulesName = ":schedules";

/** Whether the tag belongs to agents, not to processes or schedules. */
export function isTreeTag(tag: string): boolean {
  return tag.includes("/") && !tag.endsWith(`/${schedulesName}`);
}
/** Begins the tag of a tenant's deletions. Tags of trees have a slash. */
const deletionsPrefix = "deletions-";

/** All keys of one tree are in one slot of a cluster, because only they share the hash tag in braces. */
export interface TreeKeys {
  readonly tag: string;
  readonly names: TreeNames;
  readonly tenant: string;
  /** The partition of the indexes that list this tree. */
  readonly partition: number;
  /** Records, heads, accounts, requests and the versions of collections, each as `version|json`. */
  readonly rows: string;
  /** The last version and the last cursor, and the outcome of each process's last transaction. */
  readonly meta: string;
  readonly journal: string;
  readonly lock: string;
  /** Ids of the agents, and of the accounts, in the order in which they were created. */
  readonly agents: string;
  readonly accounts: string;
  /** Waiters on top accounts, by account and key of their ask. */
  readonly waiters: string;
  /** All requests and the open ones, by opening time. */
  readonly requests: string;
  readonly open: string;
  /** The turns of the root: the fixed fields of each, and those that change. */
  readonly turns: string;
  /** Ids of the turns, newest change first. */
  readonly changes: string;
  /** The definitions of the tree's agents, by hash. */
  readonly definitions: string;
  readonly timers: string;
  /** Timers by due time. */
  readonly due: string;
  readonly projections: string;
  /** The keys of a tenant's schedules; only in the group that `schedulesOf` returns. */
  readonly schedules: string;
  /** The keys that expire while the tree is at rest. */
  readonly expiring: string;
  ofAgent(part: AgentPart, agentId: string): string;
}

/** The ids in a tree's tag. */
interface TreeNames {
  readonly tenant: string;
  readonly rootAgentId: string;
}

function namesOf(tag: string): TreeNames {
  const parts = tag.split("/");
  const [tenant = "", rootAgentId = ""] = tag.includes("%") ? parts.map(decodeURIComponent) : parts;
  return { tenant, rootAgentId };
}

/** The names of all keys. Ids may contain any characters; different ids never result in the same key. */
export class RedisKeys {
  readonly #prefix: string;
  readonly #groups = new Map<string, TreeKeys>();

  /** Throws `InvalidInputError` for a prefix with braces, which would replace the hash tags of the trees. */
  constructor(prefix: string) {
    if (/[{}]/.test(prefix)) {
      throw new InvalidInputError(`prefix is ${JSON.stringify(prefix)}; expected any text without braces`);
    }
    this.#prefix = wellFormed(prefix, "prefix");
  }

  /** An agent's id contains the id of its root, which determines its tree. */
  treeOf(tenant: string, agentId: string): TreeKeys {
    const root = rootOf(wellFormed(agentId, "agent id"));
    // The encoded parts contain neither braces nor slashes.
    return this.#group(`${encodeURIComponent(wellFormed(tenant, "tenant"))}/${encodeURIComponent(root)}`);
  }

  /** A tree by its tag. */
  ofTag(tag: string): TreeKeys {
    return this.#group(tag);
  }

  /** The registered processes, stored like a tree. */
  processes(): TreeKeys {
    return this.#group("processes");
  }

  /** The accounts above the roots of a tenant's trees, stored like a tree, and thus in one slot; no tree has a tag without a slash. */
  above(tenant: string): TreeKeys {
    return this.#group(`above:${encodeURIComponent(wellFormed(tenant, "tenant"))}`);
  }

  /** The schedules of a tenant, stored like a tree. Encoded ids contain no colon, so no tree has this tag. */
  schedulesOf(tenant: string): TreeKeys {
    return this.#group(`${encodeURIComponent(wellFormed(tenant, "tenant"))}/${schedulesName}`);
  }

  /** The deletions of a tenant, stored like a tree. */
  deletions(tenant: string): TreeKeys {
    return this.#group(`${deletionsPrefix}${encodeURIComponent(wellFormed(tenant, "tenant"))}`);
  }

  /**
   * An index over trees, ordered by member or by score, with a hash of each member's last write. `of`: the tenant, and the other ids that
   * select the index.
   */
  index(list: IndexName, partition: number, ...of: readonly string[]): IndexKeys {
    const about = of.map((one) => encodeURIComponent(wellFormed(one, list))).join("/");
    const base = `${this.#prefix}{hints-${partition}}:${list}`;
    return { list: `${base}:${about}`, stamps: `${base}-told:${about}` };
  }

  /** This key exists once any process lets trees expire. */
  expires(): string {
    return `${this.#prefix}{processes}:expires`;
  }

  /** The trees that are about to expire, by the time at which their index entries may be removed; and these entries. */
  expired(): { readonly due: string; readonly entries: string } {
    const due = `${this.#prefix}{processes}:expired`;
    return { due, entries: `${due}-entries` };
  }

  channel(): string {
    return `${this.#prefix}writes`;
  }

  /** The channel for live messages about a tree; without a tree, the channel on which followers announce themselves. */
  liveChannel(tree?: TreeKeys): string {
    return tree === undefined ? `${this.#prefix}live` : `${this.#prefix}{${tree.tag}}:live`;
  }

  /** Whether this is the tag of a tree. Published texts may be arbitrary. */
  isTag(text: string): boolean {
    if (this.#groups.has(text)) return true;
    try {
      const { tenant, rootAgentId } = namesOf(text);
      return tenant !== "" && rootAgentId !== "";
    } catch {
      return false;
    }
  }

  /** The ids in a tree's tag. */
  namesIn(tag: string): TreeNames {
    return this.#groups.get(tag)?.names ?? namesOf(tag);
  }

  /** Cached, because each piece of work calls it several times. */
  #group(tag: string): TreeKeys {
    const known = this.#groups.get(tag);
    if (known) return known;
    if (this.#groups.size >= GROUPS_KEPT) this.#groups.clear();
    const group = this.#newGroup(tag);
    this.#groups.set(tag, group);
    return group;
  }

  #newGroup(tag: string): TreeKeys {
    const base = `${this.#prefix}{${tag}}:`;
    return {
      tag,
      names: namesOf(tag),
      tenant: decodeURIComponent(tag.slice(0, Math.max(0, tag.indexOf("/")))),
      partition: hashOf(tag) % PARTITIONS,
      rows: `${base}rows`,
      meta: `${base}meta`,
      journal: `${base}journal`,
      lock: `${base}lock`,
      agents: `${base}agents`,
      accounts: `${base}accounts`,
      waiters: `${base}waiters`,
      requests: `${base}requests`,
      open: `${base}open`,
      turns: `${base}turns`,
      changes: `${base}changes`,
      definitions: `${base}definitions`,
      timers: `${base}timers`,
      due: `${base}due`,
      projections: `${base}projections`,
      schedules: `${base}schedules`,
      expiring: `${base}expiring`,
      ofAgent: (part, agentId) => `${base}${part}:${wellFormed(agentId, "agent id")}`,
    };
  }
}

const recordPrefix = "agent:";
const headPrefix = "head:";

/** Names of rows in a tree's hash. */
export const fields = {
  record: (agentId: string): string => `${recordPrefix}${wellFormed(agentId, "agent id")}`,
  head: (agentId: string): string => `${headPrefix}${wellFormed(agentId, "agent id")}`,
  account: (accountId: string): string => `account:${wellFormed(accountId, "account id")}`,
  request: (agentId: string, requestId: string): string => `request:${requestMember({ agentId, requestId })}`,
  meaning: (agentId: string, text: string): string => `key:${pairOf(agentId, text)}`,
  schedule: (key: string): string => `schedule:${wellFormed(key, "schedule key")}`,
  deletion: (idHash: string): string => `deletion:${wellFormed(idHash, "hash")}`,
  process: (processId: string): string => `process:${wellFormed(processId, "process id")}`,
  /** A row above the roots; the prefix distinguishes it from the versions of collections. */
  outer: (kind: string, id: string): string => `above-${kind}:${wellFormed(id, "id")}`,
  /** Versions of collections. */
  children: (agentId: string): string => `children:${wellFormed(agentId, "agent id")}`,
  artifacts: (agentId: string): string => `artifacts:${wellFormed(agentId, "agent id")}`,
  queue: (accountId: string): string => `waiters:${wellFormed(accountId, "account id")}`,
  accounts: "accounts",
  processes: "processes",
  /** A lower bound of the due times of the tree's timers; the index of timers has the same value. */
  timersFrom: "first-timer",
  webhooks: "webhooks",
  /** Whether the indexes of unattended agents list the tree. */
  posts: "posts",
  holder: (processId: string): string => `holder:${wellFormed(processId, "process id")}`,
} as const;

/** Whether the rows with this tag can be read in works on other trees. */
export function isShared(tag: string): boolean {
  return tag === "processes" || tag.startsWith(deletionsPrefix);
}

export function isHead(field: string): boolean {
  return field.startsWith(headPrefix);
}

/** The agent whose record this row is; `undefined` for other rows. */
export function agentOfRecord(field: string): string | undefined {
  return field.startsWith(recordPrefix) ? field.slice(recordPrefix.length) : undefined;
}

/** The id of an object of an agent as one unambiguous text: it begins with the length of the agent id. */
export function pairOf(agentId: string, id: string): string {
  return `${agentId.length}:${wellFormed(agentId, "agent id")}${wellFormed(id, "id")}`;
}

/** A request as a member of sorted sets by time; members with the same time are ordered by id. */
export function requestMember({
  requestId,
  agentId,
}: {
  readonly requestId: string;
  readonly agentId: string;
}): string {
  return JSON.stringify([wellFormed(requestId, "request id"), wellFormed(agentId, "agent id")]);
}

/** Field prefix of the fixed fields of a turn. */
export const openedTurnPrefix = "opened:";

/** The fields of a turn: its fixed values, and those that change. */
export function turnFields(turnId: string): readonly [string, string] {
  const id = wellFormed(turnId, "turn id");
  return [`${openedTurnPrefix}${id}`, `changed:${id}`];
}

/** The ids that select the index of an owner. */
export function ofOwner(ownerId: string): readonly [string, string] {
  return ["owner", ownerId];
}

/** The indexes that list a turn by its last change. */
export function turnIndexes(
  keys: RedisKeys,
  { tenant, partition }: Pick<TreeKeys, "tenant" | "partition">,
  {
    ownerId,
    sessionId,
  }: { readonly ownerId?: string | null | undefined; readonly sessionId?: string | null | undefined },
): readonly IndexKeys[] {
  const of = (...about: readonly string[]): IndexKeys => keys.index("turns", partition, tenant, ...about);
  const lists = [of()];
  if (ownerId !== null && ownerId !== undefined) lists.push(of(...ofOwner(ownerId)));
  if (sessionId !== null && sessionId !== undefined) lists.push(of("session", sessionId));
  return lists;
}

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}
