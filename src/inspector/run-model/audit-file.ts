import { type AUDIT_FORMAT, type AuditLink, hashOfJson, isHashed, type Sealed, type Sha256 } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import type { AgentRequest, EntryType, Json } from "../../state/index.ts";

/** An agent of an audited run. */
export interface AuditAgent {
  /** Its id. */
  readonly agentId: string;
  /** The immutable fields of its record, with which its chain begins. */
  readonly identity: Sealed;
  /** The number of its last entry as stored beside the journal. */
  readonly seq: number;
  /** The time of its last entry as stored beside the journal, in milliseconds since the epoch. */
  readonly at: number;
  /** The hash of its last link, or of its identity. */
  readonly head: string | null;
}

/** A decided request as stored beside the journal. */
export interface AuditRequest
  extends Pick<AgentRequest, "agentId" | "requestId" | "kind" | "name" | "status" | "argumentsHash"> {
  /** `null` if it is not decided. */
  readonly verdict: string | null;
  /** The person who decided; `null` if it is not decided, or has expired. */
  readonly by: string | null;
}

/** A definition under which agents have worked. `content` is absent if it was removed. */
export interface AuditDefinition {
  /** Its hash in the journal. */
  readonly hash: string;
  /** Its name. */
  readonly name: string;
  /** All its other fields. Absent if it was removed. */
  readonly content?: Json | undefined;
}

/** A run with its hash chain. Contents may be removed from it without a change of the head. */
export interface AuditFile {
  /** The version of the format. */
  readonly format: typeof AUDIT_FORMAT;
  /** Milliseconds since the epoch. */
  readonly auditedAt: number;
  /** The root agent of the run. */
  readonly rootAgentId: string;
  /** The hash over the links of all agents in the order of their commits; `null` if a link has no hash. */
  readonly head: string | null;
  /** Parents before their children. */
  readonly agents: readonly AuditAgent[];
  /** All entries, in the order of their commits. */
  readonly links: readonly AuditLink[];
  /** The accounts as stored. */
  readonly accounts: readonly Account[];
  /** The requests as stored beside the journal. */
  readonly requests: readonly AuditRequest[];
  /** The stored definitions. */
  readonly definitions: readonly AuditDefinition[];
}

/** Fields of entries that every audit shows or checks. They contain names, ids, hashes and numbers, and are never removed. */
const needed: ReadonlySet<string> = new Set([
  ..."type seq at epoch turnId step callId attempt number index run name kind effect verdict by outcome".split(" "),
  ..."accountId argumentsHash artifactId ask asked awaits background before calls callIds checksOutput".split(" "),
  ..."childId childIds childTurnId code contentType costMicros definition durationMs endsTurn expiresAt finishReason".split(
    " ",
  ),
  ..."for hasText holder hook hooks inputMessageIds intent internal isExhausted kept leavesWork".split(" "),
  ..."lifecycle limit limits max messageId messageIds model needed needsApproval now openIds".split(" "),
  ..."outputMessageId phase plugin price promptHash provider queue reason recorded repairMessageId reports".split(" "),
  ..."requestId requestIds reservation retryAt reviewDue scope settlement size steps stopReason stub stubbed".split(
    " ",
  ),
  ..."strategy summaryMessageId through timerId to toolCalls tools until usage used valid version waking".split(" "),
  ..."wakes wokenBy".split(" "),
]);
const neededOfMessage: ReadonlySet<string> = new Set(["id", "role", "createdAt", "origin", "callId"]);
const neededOfIdentity: ReadonlySet<string> = new Set(
  "agentId rootAgentId parentAgentId parentTurnId parentCallId createdAt forkedFrom".split(" "),
);
/** Texts of people and tools under a name that is elsewhere a word from a list. */
const texts: Readonly<Partial<Record<EntryType, string>>> = { "artifact.saved": "name", "request.decided": "reason" };

/** The kind of object that is sealed: it decides which fields may be removed. */
export type SealedKind = "entry" | "message" | "identity";

/** Whether a field may be removed. */
export function isRemovable(kind: SealedKind, { fields }: Sealed, name: string): boolean {
  if (kind === "message") return !neededOfMessage.has(name);
  if (kind === "identity") return !neededOfIdentity.has(name);
  return !needed.has(name) || texts[fields["type"] as EntryType] === name;
}

/** Removes the fields for which `isRemoved` is true, and which may be removed; their hashes stay. */
export function withoutFields(
  kind: SealedKind,
  sealed: Sealed,
  { sha256, isRemoved }: { readonly sha256: Sha256; readonly isRemoved: (name: string, value: Json) => boolean },
): Sealed {
  const gone = Object.entries(sealed.fields).filter(
    ([name, value]) => isHashed(value) && isRemovable(kind, sealed, name) && isRemoved(name, value),
  );
  if (gone.length === 0) return sealed;
  const names = new Set(gone.map(([name]) => name));
  return {
    fields: Object.fromEntries(Object.entries(sealed.fields).filter(([name]) => !names.has(name))),
    removed: {
      ...sealed.removed,
      ...Object.fromEntries(gone.map(([name, value]) => [name, hashOfJson(value, sha256)])),
    },
  };
}
