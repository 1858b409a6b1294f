import {
  type AuditLink,
  firstHead,
  hashOfJson,
  hashOfLink,
  hashOfMessage,
  hashOfSealed,
  headAfter,
  type Sealed,
  type Sha256,
} from "../../base/index.ts";
import type { Account, Amounts } from "../../budget/index.ts";
import type { AgentRecord, Json } from "../../state/index.ts";
import { AccountFold } from "./account-fold.ts";
import { type AuditFile, isRemovable } from "./audit-file.ts";
import type { RunEntry, RunEntryOf } from "./run-log.ts";

/** Something that does not fit in an audited run. */
export interface AuditProblem {
  /** `null` if it concerns the whole run. */
  readonly agentId: string | null;
  /** Number of the entry in the journal of the agent; `null` if it concerns no entry. */
  readonly seq: number | null;
  /** What is wrong, for people. */
  readonly problem: string;
}

/** A model call, by the hash of its prompt. */
export interface AuditedPrompt {
  /** The agent that called the model. */
  readonly agentId: string;
  /** The entry with the intent of the call. */
  readonly seq: number;
  /** The turn. */
  readonly turnId: string;
  /** The step in the turn, from 1. */
  readonly step: number;
  /** The model. */
  readonly model: string;
  /** Hash of the messages that were sent. */
  readonly promptHash: string;
}

/** A request to a person or a client, and its decision. */
export interface AuditedApproval {
  /** The agent that asked. */
  readonly agentId: string;
  /** The entry that opened the request. */
  readonly seq: number;
  /** The request. */
  readonly requestId: string;
  /** What was asked for: an approval, an answer, credentials, or the result of a client tool. */
  readonly kind: string;
  /** The tool. */
  readonly name: string;
  /** Hash of the arguments in question. */
  readonly argumentsHash: string;
  /** `null` while it is open. */
  readonly verdict: string | null;
  /** The person who decided; `null` if it is open or has expired. */
  readonly by: string | null;
  /** Milliseconds since the epoch; `null` while it is open. */
  readonly decidedAt: number | null;
}

/**
 * A tool call. `ran`: its code ended; `recorded`: in a fork, it got a recorded result; `refused`: its code never started; `unknown`: its
 * code started, and its end is not known; `open`: it has no result yet.
 */
export interface AuditedEffect {
  /** The agent that called the tool. */
  readonly agentId: string;
  /** The entry that decided the outcome. */
  readonly seq: number;
  /** The call. */
  readonly callId: string;
  /** The tool. */
  readonly name: string;
  /** Its class; `null` if no entry names it. */
  readonly effect: string | null;
  /** What became of the call. */
  readonly outcome: "ran" | "recorded" | "stubbed" | "refused" | "unknown" | "open";
  /** How often its code was started. */
  readonly attempts: number;
}

/** The amounts of an account according to the journal. `isEqual`: the stored account has the same; `null`: it is not compared. */
export interface AuditedAccount {
  /** The account. */
  readonly accountId: string;
  /** Used tokens. */
  readonly tokens: number;
  /** Millionths of a dollar. */
  readonly costMicros: number;
  /** Tool calls. */
  readonly toolCalls: number;
  /** Whether the stored account has the same amounts; `null` if it was not compared. */
  readonly isEqual: boolean | null;
}

/**
 * The result of an audit. `verified`: the run has the given head, and all checks pass; `consistent`: all checks pass, and no head was
 * given; `partial`: hashes of deleted messages are missing, so the head is unknown; `broken`: see `problems`.
 */
export interface AuditReport {
  /** See the description of the report. */
  readonly verdict: "verified" | "consistent" | "partial" | "broken";
  /** The root agent of the run. */
  readonly rootAgentId: string;
  /** The recomputed head; `null` if it is unknown. */
  readonly head: string | null;
  /** The agents with the head of each. */
  readonly agents: readonly { readonly agentId: string; readonly head: string | null }[];
  /** The number of entries. */
  readonly entries: number;
  /** How many entries the given head covers; `null` without a head, or if the run does not have it. */
  readonly covered: number | null;
  /** At most 100. */
  readonly problems: readonly AuditProblem[];
  /** The number of all problems. */
  readonly problemCount: number;
  /** Removed fields, messages without content, and messages whose hash is unknown. */
  readonly removed: { readonly fields: number; readonly messages: number; readonly unknown: number };
  /** The model calls, in order. */
  readonly prompts: readonly AuditedPrompt[];
  /** The requests, in order. */
  readonly approvals: readonly AuditedApproval[];
  /** The tool calls, in order. */
  readonly effects: readonly AuditedEffect[];
  /** The accounts, in the order in which they were opened. */
  readonly accounts: readonly AuditedAccount[];
  /** The definitions that entries name; `isStored`: whether the store has them. */
  readonly definitions: readonly { readonly name: string; readonly hash: string; readonly isStored: boolean }[];
  /** The origin of a fork; `null` if the run is none. */
  readonly forkedFrom: NonNullable<AgentRecord["forkedFrom"]> | null;
}

/** What `checkAudit` compares the run with. */
export interface AuditExpectation {
  readonly sha256: Sha256;
  /** A head that was kept outside of the store. */
  readonly head?: string | undefined;
  /** An earlier audit of the run, whose entries the run must begin with. */
  readonly earlier?: AuditFile | undefined;
}

const PROBLEMS_KEPT = 100;

/** Checks a run: its chain, its order, its approvals, its money and its definitions. Never throws for a value of the right form. */
export function checkAudit(file: AuditFile, expected: AuditExpectation): AuditReport {
  return new Check(file, expected).report();
}

class Check {
  readonly #file: AuditFile;
  readonly #sha256: Sha256;
  readonly #head: string | undefined;
  readonly #earlier: AuditFile | undefined;
  readonly #problems: AuditProblem[] = [];
  #count = 0;
  #covered: number | null = null;
  readonly #removed = { fields: 0, messages: 0, unknown: 0 };

  constructor(file: AuditFile, { sha256, head, earlier }: AuditExpectation) {
    this.#file = file;
    this.#sha256 = sha256;
    this.#head = head;
    this.#earlier = earlier;
  }

  report(): AuditReport {
    const { rootAgentId, links, agents } = this.#file;
    const head = this.#checkChain();
    this.#checkOrder();
    const entries = links.map((link) => ({ agentId: link.agentId, entry: entryOf(link) }));
    const facts = new Facts((agentId, seq, problem) => this.#note(agentId, seq, problem), this.#sha256);
    for (const { agentId, entry } of entries) this.#read(agentId, entry.seq, () => facts.add(agentId, entry));
    this.#checkRequests(facts);
    const forkedFrom = forkOf(this.#file);
    const accounts = this.#checkMoney(entries, forkedFrom !== null);
    const definitions = this.#checkDefinitions(facts);
    this.#checkHead(head);
    return {
      verdict: this.#verdict(head),
      rootAgentId,
      head,
      agents: agents.map((agent) => ({ agentId: agent.agentId, head: agent.head })),
      entries: links.length,
      covered: this.#covered,
      problems: this.#problems,
      problemCount: this.#count,
      removed: this.#removed,
      prompts: facts.prompts,
      approvals: [...facts.approvals.values()],
      effects: [...facts.effects.values()],
      accounts,
      definitions,
      forkedFrom,
    };
  }

  #verdict(head: string | null): AuditReport["verdict"] {
    if (this.#count > 0) return "broken";
    if (this.#covered !== null) return "verified";
    return head === null ? "partial" : "consistent";
  }

  #note(agentId: string | null, seq: number | null, problem: string): void {
    this.#count += 1;
    if (this.#problems.length < PROBLEMS_KEPT) this.#problems.push({ agentId, seq, problem });
  }

  /** A file may have entries that lack fields, which no journal has. */
  #read<Value>(agentId: string, seq: number | null, read: () => Value): Value | undefined {
    try {
      return read();
    } catch {
      this.#note(agentId, seq, "the entry cannot be read");
      return undefined;
    }
  }

  /** Recomputes all hashes. Returns the head of the run. */
  #checkChain(): string | null {
    const { rootAgentId, agents, links } = this.#file;
    const heads = new Map<string, string | null>();
    for (const { agentId, identity } of agents) {
      if (heads.has(agentId)) this.#note(agentId, null, "the agent occurs twice");
      if (identity.fields["agentId"] !== agentId) this.#note(agentId, null, "its identity is another agent's");
      this.#checkSealed("identity", identity, { agentId, seq: null });
      heads.set(agentId, this.#read(agentId, null, () => hashOfSealed(identity, this.#sha256)) ?? null);
    }
    const cleared = new Map(
      links.flatMap((link, index) => (entryOf(link).type === "conversation.cleared" ? [[link.agentId, index]] : [])),
    );
    let head: string | null = firstHead(rootAgentId, this.#sha256);
    for (const [index, link] of links.entries()) {
      const { agentId } = link;
      const { seq } = entryOf(link);
      const previous = heads.get(agentId);
      if (previous === undefined) this.#note(agentId, seq, "its agent is missing");
      this.#checkLink(link, index < (cleared.get(agentId) ?? -1));
      const hash = this.#read(agentId, seq, () => hashOfLink(link, previous ?? null, this.#sha256)) ?? null;
      if (hash !== link.hash) {
        this.#note(agentId, seq, "the entry, a message of it or the entry before it was changed, removed or added");
      }
      // Goes on with the hash in the file, so that each changed entry is named and not all entries after it.
      heads.set(agentId, link.hash);
      head = headAfter(head, hash, this.#sha256);
      if (head !== null && head === this.#head) this.#covered = index + 1;
      const before = this.#earlier?.links[index];
      if (before && before.hash !== null && before.hash !== hash) {
        this.#note(agentId, seq, "the entry differs from the earlier audit");
      }
    }
    if ((this.#earlier?.links.length ?? 0) > links.length) {
      this.#note(
        null,
        null,
        `the earlier audit has ${this.#earlier?.links.length} entries, the run only ${links.length}`,
      );
    }
    if (head !== this.#file.head) {
      this.#note(null, null, "the head does not fit the entries: their order, or the head, was changed");
    }
    for (const agent of agents) {
      if (agent.head !== heads.get(agent.agentId)) this.#note(agent.agentId, null, "its head does not fit its entries");
    }
    return head;
  }

  /** `isCleared`: the conversation was deleted after the entry, which explains that its messages are missing. */
  #checkLink(link: AuditLink, isCleared: boolean): void {
    const where = { agentId: link.agentId, seq: entryOf(link).seq };
    this.#checkSealed("entry", link.entry, where);
    for (const message of link.messages) {
      if (message.message) this.#checkSealed("message", message.message, where);
      else this.#removed[message.hash === null ? "unknown" : "messages"] += 1;
      if (message.hash === null && !isCleared) {
        this.#note(where.agentId, where.seq, `message ${message.id} is missing, but its conversation was not deleted`);
      }
      if (message.message && message.hash !== hashOfMessage(message, this.#sha256)) {
        this.#note(where.agentId, where.seq, `message ${message.id} was changed`);
      }
    }
  }

  #checkSealed(
    kind: "entry" | "message" | "identity",
    sealed: Sealed,
    where: { agentId: string; seq: number | null },
  ): void {
    for (const [name, hash] of Object.entries(sealed.removed ?? {})) {
      this.#removed.fields += 1;
      const isWrong =
        !isRemovable(kind, sealed, name) || Object.hasOwn(sealed.fields, name) || !/^[0-9a-f]{64}$/.test(hash);
      if (isWrong) this.#note(where.agentId, where.seq, `its field "${name}" may not be removed`);
    }
  }

  /** Entries are numbered without gaps, and their times and epochs never decrease. */
  #checkOrder(): void {
    const last = new Map<string, { seq: number; at: number; epoch: number }>();
    for (const link of this.#file.links) {
      const { agentId } = link;
      const { seq, at, epoch } = link.entry.fields as { seq: number; at: number; epoch: number };
      const before = last.get(agentId) ?? { seq: 0, at: 0, epoch: 0 };
      if (seq !== before.seq + 1) this.#note(agentId, seq, `entry ${seq} follows entry ${before.seq}`);
      if (at < before.at || epoch < before.epoch)
        this.#note(agentId, seq, "its time or epoch is before that of the previous entry");
      last.set(agentId, { seq, at, epoch });
    }
    for (const { agentId, seq } of this.#file.agents) {
      const found = last.get(agentId)?.seq ?? 0;
      if (found !== seq)
        this.#note(agentId, found, `the journal ends at entry ${found}; the agent's last entry is ${seq}`);
    }
  }

  /** A stored request equals the one of the journal, once the journal has its decision. */
  #checkRequests({ approvals }: Facts): void {
    for (const request of this.#file.requests) {
      const { agentId, requestId, argumentsHash, verdict, by } = request;
      const journalled = approvals.get(requestId);
      if (!journalled) {
        this.#note(agentId, null, `request ${requestId} is not in the journal`);
        continue;
      }
      if (journalled.argumentsHash !== argumentsHash) {
        this.#note(agentId, journalled.seq, `request ${requestId} has other arguments than in the journal`);
      }
      if (journalled.verdict !== null && (journalled.verdict !== verdict || journalled.by !== by)) {
        this.#note(agentId, journalled.seq, `request ${requestId} has another decision than in the journal`);
      }
    }
  }

  /** The stored accounts equal the sums of the entries. A fork starts with unused accounts, so its past is not in them. */
  #checkMoney(entries: readonly PlacedEntry[], isFork: boolean): AuditedAccount[] {
    const stored = new Map(this.#file.accounts.map((account) => [account.id, account]));
    const fold = new AccountFold();
    fold.learn(stored.values());
    for (const { agentId, entry } of entries) this.#read(agentId, entry.seq, () => fold.apply(agentId, entry));
    const accounts = fold.accounts.map((account): AuditedAccount => {
      const { id, used } = account;
      const kept = stored.get(id);
      const isEqual = isFork ? null : kept !== undefined && isSameAmounts(kept, account);
      if (isEqual === false) {
        const problem = kept ? `has ${amountsOf(kept)}, its entries have ${amountsOf(account)}` : "is not stored";
        this.#note(account.agentId, null, `account ${id} ${problem}`);
      }
      const { tokens, costMicros, toolCalls } = used;
      return { accountId: id, tokens, costMicros, toolCalls, isEqual };
    });
    if (isFork) return accounts;
    const known = new Set(accounts.map(({ accountId }) => accountId));
    for (const account of stored.values()) {
      if (known.has(account.id) || isUnused(account)) continue;
      this.#note(account.agentId, null, `account ${account.id} has ${amountsOf(account)}, and no entries`);
    }
    return accounts;
  }

  #checkDefinitions({ definitions }: Facts): AuditReport["definitions"] {
    const stored = new Map(this.#file.definitions.map((definition) => [definition.hash, definition]));
    for (const { hash, name, content } of stored.values()) {
      const isRight = content === undefined || hashOfJson(content, this.#sha256).slice(0, hash.length) === hash;
      if (!isRight) this.#note(null, null, `definition "${name}" does not have the hash ${hash}`);
    }
    return [...definitions].map(([hash, name]) => ({ name, hash, isStored: stored.has(hash) }));
  }

  #checkHead(head: string | null): void {
    if (this.#head === undefined || this.#covered !== null || head === null) return;
    this.#note(
      null,
      null,
      "the run does not have the given head: an entry up to it was changed, removed, added or moved, or the end is missing",
    );
  }
}

interface PlacedEntry {
  readonly agentId: string;
  readonly entry: RunEntry;
}

/** The entry without its removed fields, which no check reads. */
export function entryOf({ entry: { fields } }: AuditLink): RunEntry {
  const patch = { addedMessageIds: [], edited: [], removedMessageIds: [], stop: null, continueRequested: false };
  return { patch, ...fields } as unknown as RunEntry;
}

function forkOf({ agents, rootAgentId }: AuditFile): AuditReport["forkedFrom"] {
  const root = agents.find(({ agentId }) => agentId === rootAgentId);
  return (root?.identity.fields["forkedFrom"] as AgentRecord["forkedFrom"]) ?? null;
}

const compared = [
  "steps",
  "treeSteps",
  "toolCalls",
  "treeToolCalls",
  "tokens",
  "costMicros",
] as const satisfies readonly (keyof Amounts)[];

/** The working time is not compared, because the journal has times for people. */
function isSameAmounts(one: Account, other: Account): boolean {
  return (
    compared.every((name) => one.used[name] === other.used[name]) &&
    one.reserved.tokens === other.reserved.tokens &&
    one.reserved.costMicros === other.reserved.costMicros
  );
}

function isUnused(account: Account): boolean {
  return compared.every((name) => account.used[name] === 0);
}

function amountsOf({ used, reserved }: Account): string {
  const held = reserved.tokens > 0 ? `, ${reserved.tokens} tokens reserved` : "";
  return `${used.tokens} tokens, ${used.costMicros} micro-dollars, ${used.toolCalls} tool calls${held}`;
}

type Note = (agentId: string, seq: number, problem: string) => void;

/** The facts that an audit lists, from the entries. */
class Facts {
  readonly prompts: AuditedPrompt[] = [];
  readonly approvals = new Map<string, AuditedApproval>();
  readonly effects = new Map<string, AuditedEffect>();
  /** Names by hash. */
  readonly definitions = new Map<string, string>();
  readonly #gates = new Map<string, RunEntryOf<"call.gated">>();
  readonly #approved = new Set<string>();
  readonly #note: Note;
  readonly #sha256: Sha256;

  constructor(note: Note, sha256: Sha256) {
    this.#note = note;
    this.#sha256 = sha256;
  }

  add(agentId: string, entry: RunEntry): void {
    if ("definition" in entry && entry.definition) this.definitions.set(entry.definition.hash, entry.definition.name);
    switch (entry.type) {
      case "model.requested":
      case "generate.requested": {
        const { seq, turnId, step, model, promptHash } = entry;
        this.prompts.push({ agentId, seq, turnId, step, model, promptHash });
        return;
      }
      case "call.gated":
        return this.#gate(agentId, entry);
      case "request.opened": {
        const { seq, requestId, kind, name, argumentsHash } = entry;
        const open = { verdict: null, by: null, decidedAt: null };
        this.approvals.set(requestId, { agentId, seq, requestId, kind, name, argumentsHash, ...open });
        const gate = this.#gates.get(entry.callId);
        if (kind !== "approval" || entry.asked || !gate || gate.argumentsHash === argumentsHash) return;
        return this.#note(agentId, seq, `request ${requestId} asks for other arguments than those of its call`);
      }
      case "request.decided":
        return this.#decide(agentId, entry);
      case "tool.started":
        return this.#start(agentId, entry);
      case "tool.settled":
        return this.#settle(agentId, entry);
      case "intent.refused":
        if (entry.intent === "tool.started" && entry.callId !== undefined) this.#refuse(agentId, entry, entry.callId);
        return;
      default:
    }
  }

  #gate(agentId: string, entry: RunEntryOf<"call.gated">): void {
    this.#gates.set(entry.callId, entry);
    this.#effect(agentId, { ...entry, outcome: entry.verdict === "allowed" ? "open" : "refused", attempts: 0 });
    const args: Json | undefined = entry.arguments;
    if (args === undefined || entry.argumentsHash === "") return;
    const hash = hashOfJson(args, this.#sha256).slice(0, entry.argumentsHash.length);
    if (hash !== entry.argumentsHash) {
      this.#note(
        agentId,
        entry.seq,
        `the arguments of call ${entry.callId} do not have the hash ${entry.argumentsHash}`,
      );
    }
  }

  #decide(agentId: string, { seq, at, requestId, callId, verdict, by }: RunEntryOf<"request.decided">): void {
    const open = this.approvals.get(requestId);
    if (!open) return this.#note(agentId, seq, `request ${requestId} was decided, but not opened`);
    if (open.verdict !== null) this.#note(agentId, seq, `request ${requestId} was decided twice`);
    this.approvals.set(requestId, { ...open, verdict, by, decidedAt: at });
    if (verdict === "approved" || verdict === "edited") this.#approved.add(callId);
  }

  #start(agentId: string, entry: RunEntryOf<"tool.started">): void {
    const { seq, callId, attempt } = entry;
    // The code of a stubbed call is never started.
    if (entry.stubbed) this.#effect(agentId, { ...entry, outcome: "open", attempts: 0 });
    else this.#effect(agentId, { ...entry, outcome: "unknown", attempts: attempt });
    if (this.#gates.get(callId)?.needsApproval !== true || this.#approved.has(callId)) return;
    this.#note(agentId, seq, `call ${callId} has started without its approval`);
  }

  #settle(agentId: string, entry: RunEntryOf<"tool.settled">): void {
    const { callId, outcome, recorded, stub } = entry;
    const before = this.effects.get(callId);
    const attempts = before?.attempts ?? 0;
    const effect = before?.effect ?? null;
    const isKnown = outcome === "success" || outcome === "error";
    const isUnknown = outcome === "outcome_unknown" || (attempts > 0 && !isKnown);
    // Calls of tools on the agent's own context, of clients and of subagents have a result without a start.
    const ran = isUnknown ? "unknown" : isKnown ? "ran" : "refused";
    const given = stub === undefined ? ran : stub === null ? "refused" : "stubbed";
    this.#effect(agentId, { ...entry, effect, outcome: recorded === undefined ? given : "recorded", attempts });
  }

  #refuse(agentId: string, entry: RunEntryOf<"intent.refused">, callId: string): void {
    const before = this.effects.get(callId);
    if (before && before.attempts > 0) return;
    const name = before?.name ?? "";
    this.#effect(agentId, {
      seq: entry.seq,
      callId,
      name,
      effect: entry.effect ?? null,
      outcome: "refused",
      attempts: 0,
    });
  }

  #effect(agentId: string, { seq, callId, name, effect, outcome, attempts }: Omit<AuditedEffect, "agentId">): void {
    this.effects.set(callId, { agentId, seq, callId, name, effect, outcome, attempts });
  }
}
