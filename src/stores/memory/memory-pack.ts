import { deflateRawSync, inflateRawSync } from "node:zlib";
import {
  type AgentKey,
  agentOfAccount,
  type JournalRow,
  type Message,
  rootOf,
  type StoredDefinition,
} from "../../state/index.ts";
import type { Account } from "../../budget/index.ts";
import type { Committed } from "../rules/outcomes.ts";
import {
  type AgentRows,
  emptyAgent,
  emptyTree,
  mapOf,
  type MemoryRows,
  PackedTree,
  type TreeRows,
} from "./memory-rows.ts";

/** Larger trees stay as they are: to pack and open one would keep others waiting for milliseconds. */
const MOST_ROWS = 256;
const MOST_CHARACTERS = 131_072;
/** Level 3: level 6 takes half as long again and saves an eighth. */
const settings = { level: 3, windowBits: 14, memLevel: 6 } as const;
/** What a text may refer back to. */
const DICTIONARY_BYTES = 12_288;
const MOST_KINDS = 64;

/** What trees with the same definitions have in common. */
interface Kind {
  readonly definitions: readonly StoredDefinition[];
  /** The text of one of them: the names and most values of another one stand in it. */
  readonly dictionary: Uint8Array;
}

/** The newest kinds of each store. */
const kindsOf = new WeakMap<MemoryRows, Map<string, Kind>>();

interface Content extends Pick<TreeRows, "lastCursor"> {
  readonly agents: readonly AgentContent[];
  readonly journal: readonly JournalRow[];
  readonly accounts: readonly Account[];
}

type AgentContent = Pick<AgentRows, "record" | "head" | "nextOrdinal"> & {
  readonly outcome: Committed | null;
  /** Whether the outcome's entries are those of the agent's last row. */
  readonly isOutcomeOfLastRow: boolean;
  readonly messages: readonly { readonly cursor: number; readonly message: Message }[];
  /** What its maps hold, in the order of `mapNames`. */
  readonly maps: readonly (readonly (readonly [string, unknown])[])[];
};

const mapNames = ["artifacts", "requests", "turns", "keys"] as const;

class DeflatedTree extends PackedTree {
  /** One byte a character. */
  readonly #text: string;
  readonly #kind: Kind;

  constructor(tree: TreeRows, root: AgentRows, { text, kind }: { readonly text: string; readonly kind: Kind }) {
    const hasRequests = tree.agents.some(({ requests }) => (requests?.size ?? 0) > 0);
    super(root.record, [...(root.turns?.values() ?? [])], hasRequests);
    this.#text = text;
    this.#kind = kind;
  }

  open(): TreeRows {
    const { definitions, dictionary } = this.#kind;
    const inflated = inflateRawSync(Buffer.from(this.#text, "latin1"), { dictionary, windowBits: settings.windowBits });
    return treeOf(JSON.parse(inflated.toString()) as Content, definitions);
  }
}

/** Packs the whole tree of an agent, if nothing is left to do in it; it is opened again where it is read or written. */
export function packTreeOf(rows: MemoryRows, { tenant, agentId }: AgentKey): void {
  const ofTenant = rows.tenants.get(tenant);
  const rootAgentId = rootOf(agentId);
  const tree = ofTenant?.trees.get(rootAgentId);
  if (!ofTenant || !tree || tree instanceof PackedTree) return;
  const root = tree.agents.find(({ record }) => record.agentId === rootAgentId);
  if (!root || tree.journal.length > MOST_ROWS || !mayBePacked(tree, root)) return;
  const text = JSON.stringify(contentOf(tree));
  if (text.length > MOST_CHARACTERS) return;
  const kind = kindOf(rows, tree, text);
  const deflated = deflateRawSync(text, { ...settings, dictionary: kind.dictionary });
  const packed = new DeflatedTree(tree, root, { text: deflated.toString("latin1"), kind });
  ofTenant.trees.set(rootAgentId, packed);
  for (const { record } of tree.agents) ofTenant.agents.set(record.agentId, packed);
  for (const accountId of tree.accounts?.keys() ?? []) ofTenant.treesOfAccounts.delete(accountId);
}

/** Whether all of its work is done, and the few facts that lists need are true of all its agents. */
function mayBePacked({ agents, accounts, queues }: TreeRows, { record: root }: AgentRows): boolean {
  const isDone = agents.every(
    ({ record, head, inbox, timers }) =>
      head.work === "none" &&
      head.openRequests === 0 &&
      record.openTurnId === null &&
      (inbox?.size ?? 0) === 0 &&
      (timers?.size ?? 0) === 0,
  );
  const isUniform = agents.every(
    ({ record }) =>
      record.rootAgentId === root.agentId &&
      record.sessionId === root.sessionId &&
      record.ownerId === root.ownerId &&
      (record.parentAgentId === null) === (record === root),
  );
  const nobodyWaits = [...(queues?.values() ?? [])].every(({ length }) => length === 0);
  const isNamed = [...(accounts?.keys() ?? [])].every((id) => rootOf(agentOfAccount(id)) === root.agentId);
  return isDone && isUniform && nobodyWaits && isNamed;
}

function contentOf({ agents, journal, lastCursor, accounts }: TreeRows): Content {
  return { lastCursor, journal, accounts: [...(accounts?.values() ?? [])], agents: agents.map(agentContentOf) };
}

function agentContentOf(rows: AgentRows): AgentContent {
  const { record, head, nextOrdinal, outcome } = rows;
  const isOutcomeOfLastRow = outcome !== undefined && outcome.entries === rows.journal.at(-1)?.entries;
  return {
    record,
    head,
    nextOrdinal,
    isOutcomeOfLastRow,
    outcome: outcome === undefined ? null : isOutcomeOfLastRow ? { ...outcome, entries: [] } : outcome,
    messages: [...(rows.messagesById?.values() ?? [])],
    maps: mapNames.map((name) => [...(rows[name] ?? [])]),
  };
}

function treeOf(
  { lastCursor, journal, accounts, agents }: Content,
  definitions: readonly StoredDefinition[],
): TreeRows {
  const tree = emptyTree(lastCursor);
  tree.journal.push(...journal);
  for (const definition of definitions) tree.definitions.set(definition.hash, definition);
  if (accounts.length > 0) tree.accounts = new Map(accounts.map((account) => [account.id, account]));
  const known = new Map<string, AgentRows>();
  for (const content of agents) {
    const { record, head, nextOrdinal, outcome, isOutcomeOfLastRow, messages, maps } = content;
    const rows = emptyAgent(record, tree);
    tree.agents.push(rows);
    known.set(record.agentId, rows);
    if (record.parentAgentId !== null) known.get(record.parentAgentId)?.children.push(rows);
    Object.assign(rows, { head, nextOrdinal });
    rows.journal.push(...journal.filter(({ agentId }) => agentId === record.agentId));
    const { entries } = rows.journal.at(-1) ?? {};
    if (outcome) rows.outcome = isOutcomeOfLastRow && entries ? { ...outcome, entries } : outcome;
    for (const placed of messages) {
      rows.messages.push(placed.message);
      mapOf(rows, "messagesById").set(placed.message.id, placed);
    }
    for (const [index, name] of mapNames.entries()) {
      const values = maps[index] ?? [];
      const map: Map<string, unknown> | undefined = values.length > 0 ? mapOf(rows, name) : undefined;
      for (const [key, value] of values) map?.set(key, value);
    }
  }
  return tree;
}

/** The first tree of a kind gives the text that later ones refer to; it is kept as long as one of them is packed. */
function kindOf(rows: MemoryRows, { definitions }: TreeRows, text: string): Kind {
  const kinds = kindsOf.get(rows) ?? new Map<string, Kind>();
  kindsOf.set(rows, kinds);
  const name = [...definitions.keys()].join(",");
  const known = kinds.get(name);
  if (known) return known;
  const kind = { definitions: [...definitions.values()], dictionary: Buffer.from(text).subarray(-DICTIONARY_BYTES) };
  const [oldest] = kinds.keys();
  if (oldest !== undefined && kinds.size >= MOST_KINDS) kinds.delete(oldest);
  kinds.set(name, kind);
  return kind;
}
