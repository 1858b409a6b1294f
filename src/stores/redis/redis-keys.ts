import { InvalidInputError } from "../../errors/index.ts";
import { rootOf } from "../../state/index.ts";
import { wellFormed } from "../rules/stored-json.ts";

/** What of an agent lies under a key of its own. */
export const agentParts = ["inbox", "artifacts", "contents", "messages", "order", "index"] as const;
export type AgentPart = (typeof agentParts)[number];

/** What of a tree goes when it is removed; versions, cursors and how far projections are stay. */
export const treeParts = [
  "rows",
  "journal",
  "agents",
  "accounts",
  "waiters",
  "requests",
  "open",
  "timers",
  "due",
] as const;

/** Parts of the trees for which there are lists over all of them; fixed, because the keys depend on it. */
export const PARTITIONS = 16;

/**
 * Lists over trees: agents by their ids, also the roots alone, those of a session and those of an owner; roots by their
 * age; requests by their opening, also those that are open alone; trees by their timers; trees in which something was
 * posted; trees in which a process holds agents, by the process.
 */
export type IndexName =
  | "agents"
  | "roots"
  | "newest"
  | "session"
  | "owner"
  | "requests"
  | "open"
  | "timers"
  | "posts"
  | "holders";

export interface IndexKeys {
  readonly list: string;
  readonly stamps: string;
}

const GROUPS_KEPT = 10_000;

/** All keys of one tree lie in one slot of a cluster: they share the part in braces, and nothing else has it (row S7). */
export interface TreeKeys {
  readonly tag: string;
  readonly tenant: string;
  /** Which of the lists over trees name this one. */
  readonly partition: number;
  /** Records, heads, accounts, requests and the versions of collections, each as `version|json`. */
  readonly rows: string;
  /** The version and the cursor that were given last. */
  readonly meta: string;
  readonly journal: string;
  readonly lock: string;
  /** Ids of the agents, and of the accounts, in the order in which they were made. */
  readonly agents: string;
  readonly accounts: string;
  /** Those who wait on accounts at the top, by account and key of their ask. */
  readonly waiters: string;
  /** By the time of their opening: all, and those that are open. */
  readonly requests: string;
  readonly open: string;
  readonly timers: string;
  /** Timers by the time they are due. */
  readonly due: string;
  readonly projections: string;
  /** The keys that are about to go away, while the tree is at rest. */
  readonly expiring: string;
  receipt(owner: string): string;
  ofAgent(part: AgentPart, agentId: string): string;
}

/** The names of everything in Redis. Ids may hold any characters: no two different ones come to one key. */
export class RedisKeys {
  readonly #prefix: string;
  readonly #groups = new Map<string, TreeKeys>();

  /** Throws `InvalidInputError` for a prefix that would take the place of the trees' own hash tags. */
  constructor(prefix: string) {
    if (/[{}]/.test(prefix)) {
      throw new InvalidInputError(`prefix is ${JSON.stringify(prefix)}; it takes any text without braces`);
    }
    this.#prefix = wellFormed(prefix, "prefix");
  }

  /** An agent's id names its root, and so its tree. */
  treeOf(tenant: string, agentId: string): TreeKeys {
    const root = rootOf(wellFormed(agentId, "agent id"));
    // No character of these has a meaning in a key, and the slash is in neither.
    return this.#group(`${encodeURIComponent(wellFormed(tenant, "tenant"))}/${encodeURIComponent(root)}`);
  }

  /** A tree as it is named in the lists over trees. */
  ofTag(tag: string): TreeKeys {
    return this.#group(tag);
  }

  /** The processes, kept like a tree. */
  processes(): TreeKeys {
    return this.#group("processes");
  }

  /**
   * A list over trees: in the order of names, or of scores. Each has a hash of when a member was told of last. `of`: the
   * tenant, and whatever else the list is about.
   */
  index(list: IndexName, partition: number, ...of: readonly string[]): IndexKeys {
    const about = of.map((one) => encodeURIComponent(wellFormed(one, list))).join("/");
    const base = `${this.#prefix}{hints-${partition}}:${list}`;
    return { list: `${base}:${about}`, stamps: `${base}-told:${about}` };
  }

  /** Is there once trees go away with their time. */
  expires(): string {
    return `${this.#prefix}{processes}:expires`;
  }

  channel(): string {
    return `${this.#prefix}writes`;
  }

  /** Where live messages about a tree are sent; without a tree, where those who follow say so. */
  liveChannel(tree?: TreeKeys): string {
    return tree === undefined ? `${this.#prefix}live` : `${this.#prefix}{${tree.tag}}:live`;
  }

  /** What a tree's tag was made of. */
  namesIn(tag: string): { readonly tenant: string; readonly rootAgentId: string } {
    const [tenant = "", rootAgentId = ""] = tag.split("/").map(decodeURIComponent);
    return { tenant, rootAgentId };
  }

  /** Asked for several times in each piece of work. */
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
      timers: `${base}timers`,
      due: `${base}due`,
      projections: `${base}projections`,
      expiring: `${base}expiring`,
      receipt: (owner) => `${base}receipt:${owner}`,
      ofAgent: (part, agentId) => `${base}${part}:${wellFormed(agentId, "agent id")}`,
    };
  }
}

const recordPrefix = "a:";
const headPrefix = "h:";

/** Names of rows in a tree's hash. The first letter tells the kind. */
export const fields = {
  record: (agentId: string): string => `${recordPrefix}${wellFormed(agentId, "agent id")}`,
  head: (agentId: string): string => `${headPrefix}${wellFormed(agentId, "agent id")}`,
  account: (accountId: string): string => `$:${wellFormed(accountId, "account id")}`,
  request: (agentId: string, requestId: string): string => `r:${requestMember({ agentId, requestId })}`,
  process: (processId: string): string => `p:${wellFormed(processId, "process id")}`,
  /** Versions of collections. */
  children: (agentId: string): string => `k:${wellFormed(agentId, "agent id")}`,
  artifacts: (agentId: string): string => `f:${wellFormed(agentId, "agent id")}`,
  line: (accountId: string): string => `w:${wellFormed(accountId, "account id")}`,
  accounts: "n:accounts",
  processes: "n:processes",
  /** No timer of the tree is due before this; the list of timers over trees knows of it. */
  timersFrom: "t:",
  /** What the lists of trees in which somebody may be missing were told. */
  posts: "u:",
  holder: (processId: string): string => `l:${wellFormed(processId, "process id")}`,
} as const;

/** Whether a row is the head of an agent. */
export function isHead(field: string): boolean {
  return field.startsWith(headPrefix);
}

/** Whose record a row is; undefined for any other. */
export function agentOfRecord(field: string): string | undefined {
  return field.startsWith(recordPrefix) ? field.slice(recordPrefix.length) : undefined;
}

/** An id of something that belongs to an agent, as one text. The length tells where the first ends. */
export function pairOf(agentId: string, id: string): string {
  return `${agentId.length}:${wellFormed(agentId, "agent id")}${wellFormed(id, "id")}`;
}

/** A request in lists that are ordered by time: those of one time by their ids. */
export function requestMember({
  requestId,
  agentId,
}: {
  readonly requestId: string;
  readonly agentId: string;
}): string {
  return JSON.stringify([wellFormed(requestId, "request id"), wellFormed(agentId, "agent id")]);
}

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}
