import { hash } from "node:crypto";
import {
  type AuditLink,
  type AuditMessage,
  firstHead,
  hashOfLink,
  hashOfSealed,
  headAfter,
  seal,
  type Sealed,
} from "../../base/index.ts";
import { type AgentRecord, type Message, messagesAddedBy } from "../../state/index.ts";
import type { StoredRow, StoredTree } from "./ports.ts";

/** SHA-256 by Node. */
export function nodeSha256(text: string): string {
  return hash("sha256", text, "hex");
}

/** The hash chain of a stored tree. It is computed while `links()` is read; the heads are those after the last link. */
export class TreeChain {
  readonly #tree: StoredTree;
  readonly #known: ReadonlyMap<string, string>;
  readonly #identities: ReadonlyMap<string, Sealed>;
  readonly #heads = new Map<string, string | null>();
  /** The messages of the rows so far, by agent: an input that came too late for its turn is named again by the turn that it opens. */
  readonly #added = new Map<string, Set<string>>();
  #head: string | null;

  /** `known`: the hashes of messages that are not in the tree any more, by id. */
  constructor(tree: StoredTree, known: ReadonlyMap<string, string> = new Map()) {
    this.#tree = tree;
    this.#known = known;
    this.#identities = new Map(tree.agents.map(({ record }) => [record.agentId, identityOf(record)]));
    for (const [agentId, identity] of this.#identities) this.#heads.set(agentId, hashOfSealed(identity, nodeSha256));
    this.#head = firstHead(tree.rootAgentId, nodeSha256);
  }

  /** `null` if a link has no hash. */
  get head(): string | null {
    return this.#head;
  }

  identityOf(agentId: string): Sealed {
    return this.#identities.get(agentId) ?? seal({});
  }

  headOf(agentId: string): string | null {
    return this.#heads.get(agentId) ?? null;
  }

  /** All entries, in the order of their commits. */
  *links(): Generator<AuditLink> {
    for (const row of this.#tree.rows) {
      const { agentId } = row;
      for (const [index, entry] of row.entries.entries()) {
        const messages = this.#newMessages(row, index).map((one) => auditMessage(one, this.#known.get(one.id)));
        const whole = { agentId, entry: seal(entry), messages };
        const link = hashOfLink(whole, this.headOf(agentId), nodeSha256);
        this.#heads.set(agentId, link);
        this.#head = headAfter(this.#head, link, nodeSha256);
        yield { ...whole, hash: link };
      }
    }
  }

  #newMessages(row: StoredRow, index: number): readonly AddedMessage[] {
    const added = this.#added.get(row.agentId) ?? new Set();
    this.#added.set(row.agentId, added);
    const found = messagesOf(row, index).filter(({ id, message }) => message !== undefined || !added.has(id));
    for (const { id } of found) added.add(id);
    return found;
  }
}

/** `message`: `undefined` if it was deleted. */
interface AddedMessage {
  readonly id: string;
  readonly message: Message | undefined;
}

/** The fields that are fixed when an agent is created. */
function identityOf(record: AgentRecord): Sealed {
  const { agentId, rootAgentId, parentAgentId, parentTurnId, parentCallId, ownerId, createdAt, forkedFrom, stubs } =
    record;
  return seal({
    agentId,
    rootAgentId,
    parentAgentId,
    parentTurnId,
    parentCallId,
    ownerId,
    createdAt,
    forkedFrom,
    stubs,
  });
}

/** The messages that an entry adds; messages of its row that no entry names belong to the last entry. */
function messagesOf({ entries, messages }: StoredRow, index: number): readonly AddedMessage[] {
  const entry = entries[index];
  if (!entry) return [];
  const byId = new Map(messages.map((message) => [message.id, message]));
  const own = messagesAddedBy(entry).map((id) => ({ id, message: byId.get(id) }));
  if (index < entries.length - 1) return own;
  const named = new Set(entries.flatMap((one) => messagesAddedBy(one)));
  const others = messages.filter(({ id }) => !named.has(id)).map((message) => ({ id: message.id, message }));
  return [...own, ...others];
}

function auditMessage({ id, message }: AddedMessage, known: string | undefined): AuditMessage {
  if (!message) return { id, hash: known ?? null };
  const sealed = seal(message);
  return { id, hash: hashOfSealed(sealed, nodeSha256), message: sealed };
}
