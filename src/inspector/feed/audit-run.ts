import {
  AUDIT_FORMAT,
  type AuditLink,
  createRedactor,
  redactedText,
  type Redactor,
  type Sealed,
} from "../../base/index.ts";
import type { Json } from "../../state/index.ts";
import { nodeSha256, type StoredAgent, type StoredTree, TreeChain } from "../../stores/index.ts";
import { type AuditFile, type AuditRequest, type SealedKind, withoutFields } from "../run-model/audit-file.ts";
import { pauses } from "./pauses.ts";

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
  const chain = new TreeChain(tree, known);
  const links: AuditLink[] = [];
  const pause = pauses();
  for (const link of chain.links()) {
    await pause();
    links.push({
      ...link,
      entry: shown("entry", link.entry),
      messages: link.messages.map((one) => (one.message ? { ...one, message: shown("message", one.message) } : one)),
    });
  }
  return {
    format: AUDIT_FORMAT,
    auditedAt: Date.now(),
    rootAgentId: tree.rootAgentId,
    head: chain.head,
    agents: tree.agents.map(({ record: { agentId }, seq, at }) => {
      return { agentId, identity: shown("identity", chain.identityOf(agentId)), seq, at, head: chain.headOf(agentId) };
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
