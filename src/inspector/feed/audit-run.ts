import { hash } from "node:crypto";
import { createRedactor, redactedText, type Redactor } from "../../base/index.ts";
import { type AgentRecord, type Json, type Message, messagesAddedBy } from "../../state/index.ts";
import type { StoredAgent, StoredRow, StoredTree } from "../../stores/index.ts";
import {
  AUDIT_FORMAT,
  type AuditFile,
  type AuditLink,
  type AuditMessage,
  type AuditRequest,
  firstHead,
  hashOfLink,
  hashOfSealed,
  headAfter,
  seal,
  type Sealed,
  type SealedKind,
  withoutFields,
} from "../run-model/audit-file.ts";
import { pauses } from "./pauses.ts";

/** SHA-256 by Node. */
export function nodeSha256(text: string): string {
  return hash("sha256", text, "hex");
}

/** What `auditOfTree` may take besides the tree. */
export interface AuditTreeOptions {
  /** An earlier audit of the run: it has the hashes of messages that were deleted since. */
  readonly earlier?: AuditFile | undefined;
  /** Fields with a secret are removed; their hashes stay. Default `createRedactor()`. */
  readonly redactor?: Redactor | undefined;
}

/** Computes the hash chain of a stored tree. */
export async function auditOfTree(tree: StoredTree, options: AuditTreeOptions = {}): Promise<AuditFile> {
  const { earlier, redactor = createRedactor() } = options;
  const shown = (kind: SealedKind, sealed: Sealed): Sealed => withoutSecrets(kind, sealed, redactor);
  const known = knownMessages(earlier);
  const identities = new Map(tree.agents.map(({ record }) => [record.agentId, identityOf(record)]));
  const heads = new Map<string, string | null>();
  for (const [agentId, identity] of identities) heads.set(agentId, hashOfSealed(identity, nodeSha256));
  const links: AuditLink[] = [];
  const pause = pauses();
  let head: string | null = firstHead(tree.rootAgentId, nodeSha256);
  for (const row of tree.rows) {
    await pause();
    const { agentId } = row;
    for (const [index, entry] of row.entries.entries()) {
      const messages = messagesOf(row, index).map(({ id, message }) => auditMessage({ id, message }, known.get(id)));
      const whole = { agentId, entry: seal(entry), messages };
      const link = hashOfLink(whole, heads.get(agentId) ?? null, nodeSha256);
      heads.set(agentId, link);
      head = headAfter(head, link, nodeSha256);
      links.push({
        agentId,
        entry: shown("entry", whole.entry),
        messages: messages.map((one) => (one.message ? { ...one, message: shown("message", one.message) } : one)),
        hash: link,
      });
    }
  }
  return {
    format: AUDIT_FORMAT,
    auditedAt: Date.now(),
    rootAgentId: tree.rootAgentId,
    head,
    agents: tree.agents.map(({ record: { agentId }, seq, at }) => {
      const identity = identities.get(agentId) ?? seal({});
      return { agentId, identity: shown("identity", identity), seq, at, head: heads.get(agentId) ?? null };
    }),
    links,
    accounts: structuredClone(tree.accounts),
    requests: tree.agents.flatMap((agent) => requestsOf(agent)),
    definitions: tree.definitions.map(({ hash: own, ...content }) => {
      const isSecret = !isSame(content, redactor.value(content)) || JSON.stringify(content).includes(redactedText);
      return { hash: own, name: content.name, ...(isSecret ? {} : { content: content as Json }) };
    }),
  };
}

/** The audit without the texts of people, models and tools. */
export function contentRemoved(file: AuditFile): AuditFile {
  const all = { sha256: nodeSha256, isRemoved: () => true };
  return {
    ...file,
    agents: file.agents.map((agent) => ({ ...agent, identity: withoutFields("identity", agent.identity, all) })),
    links: file.links.map((link) => ({
      ...link,
      entry: withoutFields("entry", link.entry, all),
      messages: link.messages.map(({ id, hash: own }) => ({ id, hash: own })),
    })),
    definitions: file.definitions.map(({ hash: own, name }) => ({ hash: own, name })),
  };
}

function withoutSecrets(kind: SealedKind, sealed: Sealed, redactor: Redactor): Sealed {
  // The name of a field may show that its value is a secret.
  const isRemoved = (name: string, value: Json): boolean =>
    !isSame({ [name]: value }, redactor.value({ [name]: value }));
  return withoutFields(kind, sealed, { sha256: nodeSha256, isRemoved });
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
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
function messagesOf(
  { entries, messages }: StoredRow,
  index: number,
): readonly { readonly id: string; readonly message: Message | undefined }[] {
  const entry = entries[index];
  if (!entry) return [];
  const byId = new Map(messages.map((message) => [message.id, message]));
  const own = messagesAddedBy(entry).map((id) => ({ id, message: byId.get(id) }));
  if (index < entries.length - 1) return own;
  const named = new Set(entries.flatMap((one) => messagesAddedBy(one)));
  const others = messages.filter(({ id }) => !named.has(id)).map((message) => ({ id: message.id, message }));
  return [...own, ...others];
}

function auditMessage(
  { id, message }: { readonly id: string; readonly message: Message | undefined },
  known: string | undefined,
): AuditMessage {
  if (!message) return { id, hash: known ?? null };
  const sealed = seal(message);
  return { id, hash: hashOfSealed(sealed, nodeSha256), message: sealed };
}

function knownMessages(earlier: AuditFile | undefined): ReadonlyMap<string, string> {
  const messages = earlier?.links.flatMap((link) => link.messages) ?? [];
  return new Map(messages.flatMap(({ id, hash: own }) => (own === null ? [] : [[id, own] as const])));
}

function requestsOf({ requests }: StoredAgent): AuditRequest[] {
  return requests.map(({ agentId, requestId, kind, name, status, argumentsHash, decision }) => ({
    agentId,
    requestId,
    kind,
    name,
    status,
    argumentsHash,
    verdict: decision?.verdict ?? null,
    by: decision?.by ?? null,
  }));
}
