import { CacheWatch, type SpawnRequest } from "../../actors/index.ts";
import { DEFAULT_MAX_DEPTH, grantOf } from "../../agents/index.ts";
import { shortHash, type TraceHeaders } from "../../base/index.ts";
import { agentAccountId, bindingField, bindingOf, turnAccountId, turnFlagsOf } from "../../budget/index.ts";
import { type LanguageModel, PromptMemory } from "../../model/index.ts";
import {
  type AgentIdentity,
  childIdOf,
  type ContentPart,
  type Entry,
  type EntryOf,
  type IntentBody,
  type Message,
  turnIdOf,
  type TurnState,
  withRoot,
} from "../../state/index.ts";
import type { SpawnOrder } from "../../stores/index.ts";
import { lossOf, type LossReason } from "./journal-writer.ts";

/** Intents that start new work: without them a turn stops between two steps. */
const begins: ReadonlySet<IntentBody["type"]> = new Set(["model.requested", "tool.started", "child.spawned"]);

/**
 * Lets an agent's intents through until its process hands the agent over. Owns: which effects are held back. Their intents are
 * never proposed, because the next owner's effects propose them again.
 */
export class IntentGate {
  /** Whether intents that start new work must wait. */
  isClosed = false;
  /** Whether all intents must wait, including those of running code: the agent is about to be shut down. */
  isShut = false;
  readonly #held = new Set<string | null>();
  #onHeld: (() => void) | undefined;
  #discarded: PromiseWithResolvers<never> | undefined;

  /** Holds back further intents that start new work. */
  close(onHeld: () => void): void {
    this.isClosed = true;
    this.#onHeld ??= onHeld;
  }

  /** Holds back all further intents. */
  shut(): void {
    this.isClosed = true;
    this.isShut = true;
  }

  /** Whether an intent of this type must wait. */
  holds(type: IntentBody["type"]): boolean {
    return this.isShut || (this.isClosed && begins.has(type));
  }

  isHolding(callId: string | null): boolean {
    return this.#held.has(callId);
  }

  /** Rejects when the activation is discarded. `callId`: `null` for an effect of the turn itself. */
  async hold(callId: string | null): Promise<never> {
    this.#held.add(callId);
    this.#onHeld?.();
    this.#discarded ??= Promise.withResolvers<never>();
    return await this.#discarded.promise;
  }

  /** Rejects the held intents, because their activation has been discarded. */
  discard(why: LossReason): void {
    this.#discarded?.promise.catch(() => undefined);
    this.#discarded?.reject(lossOf(why));
  }
}

/** Notes on the last prompts that a model of the agent has answered. */
interface ModelNotes {
  readonly prompts: PromptMemory;
  readonly cache: CacheWatch;
}

/** In-memory notes that effects of one live agent share outside the journal; the next owner does not need them. */
export class EffectNotes {
  readonly #byModel = new WeakMap<LanguageModel, ModelNotes>();
  /** Created with the first note, because few agents have any. */
  #cuts: Map<string, number> | undefined;
  #dropped: Set<string> | undefined;
  /** A turn makes one model call at a time. */
  #asked: string | undefined;
  #hooked: string | undefined;
  #versions: Map<string, number> | undefined;

  promptsOf(model: LanguageModel): PromptMemory {
    return this.#notesOf(model).prompts;
  }

  cacheOf(model: LanguageModel): CacheWatch {
    return this.#notesOf(model).cache;
  }

  #notesOf(model: LanguageModel): ModelNotes {
    let notes = this.#byModel.get(model);
    if (notes === undefined)
      this.#byModel.set(model, (notes = { prompts: new PromptMemory(), cache: new CacheWatch() }));
    return notes;
  }

  noteAsked(requestKey: string): void {
    this.#asked = requestKey;
  }

  wasAsked(requestKey: string): boolean {
    return this.#asked === requestKey;
  }

  noteHooksBegun(stepKey: string): void {
    this.#hooked = stepKey;
  }

  haveHooksBegun(stepKey: string): boolean {
    return this.#hooked === stepKey;
  }

  noteCut(requestKey: string, outputTokens: number): void {
    (this.#cuts ??= new Map()).set(requestKey, outputTokens);
  }

  takeCut(requestKey: string): number | undefined {
    const cut = this.#cuts?.get(requestKey);
    this.#cuts?.delete(requestKey);
    return cut;
  }

  drop(requestKey: string): void {
    (this.#dropped ??= new Set()).add(requestKey);
  }

  takeDropped(requestKey: string): boolean {
    return this.#dropped?.delete(requestKey) ?? false;
  }

  /** The commit assigns the versions of artifacts. */
  noteCommitted(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.type === "artifact.saved") (this.#versions ??= new Map()).set(entry.artifactId, entry.version ?? 1);
    }
  }

  versionOf(artifactId: string): number {
    return this.#versions?.get(artifactId) ?? 1;
  }
}

/** The live agent that spawns a child. */
interface SpawningParent {
  readonly identity: AgentIdentity;
  readonly clock: { now(): number };
  turn(turnId: string): TurnState | undefined;
  traceOf(turnId: string): TraceHeaders | undefined;
  /** The conversation as visible to the parent's model. */
  history(): readonly Message[];
}

type SpawnBody = Extract<IntentBody, { type: "child.spawned" }>;

/** The intent of a spawn. The child's id is derived, so that a repeated spawn returns the same child. */
export function spawnBody(parent: SpawningParent, request: SpawnRequest): SpawnBody {
  const { turnId, step, callId, key, tool } = request;
  const childId = childIdOfSpawn(parent.identity, turnId, key);
  return {
    type: "child.spawned",
    turnId,
    step,
    ...(callId === null ? {} : { callId }),
    childId,
    childTurnId: turnIdOf(childId, 1),
    definition: tool.definition.ref,
    accountId: turnAccountId(turnId),
    ...(Object.keys(tool.limits).length > 0 ? { limits: tool.limits } : {}),
    ...(tool.background ? { background: tool.background } : {}),
  };
}

/** In a fork it is the id of the same spawn in the first tree, with another root: code that runs again finds its child. */
export function childIdOfSpawn(
  { rootAgentId, agentId, forkedFrom }: Pick<AgentIdentity, "rootAgentId" | "agentId" | "forkedFrom">,
  turnId: string,
  key: string,
): string {
  const first = forkedFrom?.firstAgentId ?? forkedFrom?.agentId ?? rootAgentId;
  const parts = [agentId, turnId, key].map((text) => withRoot(text, rootAgentId, first));
  return childIdOf(rootAgentId, shortHash(parts.join("\n")));
}

/** The entry of the same spawn made earlier in the turn: code that runs again after a restart spawns again. */
export function spawnedBefore(
  turnEntries: readonly Entry[],
  { childId }: SpawnBody,
): EntryOf<"child.spawned"> | undefined {
  return turnEntries.find(
    (entry): entry is EntryOf<"child.spawned"> => entry.type === "child.spawned" && entry.childId === childId,
  );
}

/** Record, account and first turn of the child, which the parent's commit creates. */
export function spawnOrderOf(parent: SpawningParent, request: SpawnRequest, body: SpawnBody, seq: number): SpawnOrder {
  const { tool, input, callId, step, turnId } = request;
  const { identity } = parent;
  const { tenant, rootAgentId, sessionId, ownerId, depth } = identity;
  const agentId = body.childId;
  const accountId = agentAccountId(agentId);
  const now = parent.clock.now();
  const trace = parent.traceOf(turnId);
  const conversation = tool.history === "conversation" ? handedOver(parent.history()) : [];
  const child: AgentIdentity = {
    tenant,
    agentId,
    rootAgentId,
    parentAgentId: identity.agentId,
    parentTurnId: turnId,
    parentStep: step,
    parentCallId: callId,
    ...(tool.background ? { background: tool.background } : {}),
    depth: depth + 1,
    definition: tool.definition.ref,
    ownerId,
    sessionId,
    createdAt: now,
    accountId,
    parentAccountId: body.accountId,
    ...bindingField(bindingOf(tool.limits, bindingOf(parent.turn(turnId)?.limits ?? {}, identity.binding))),
    ...grantOf(tool, identity.deniedTools),
    maxDepth: Math.min(identity.maxDepth, tool.policy.maxDepth ?? DEFAULT_MAX_DEPTH),
    turnLimits: turnFlagsOf(tool.limits),
    metadata: {},
    ...(identity.forkedFrom ? { forkedFrom: identity.forkedFrom } : {}),
    ...(identity.stubs ? { stubs: identity.stubs } : {}),
  };
  return {
    seq,
    identity: child,
    definition: tool.definition.stored,
    account: { id: accountId, agentId, turnId: null, parentId: body.accountId, limits: tool.limits },
    turn: {
      kind: "turn",
      key: `turn:${body.childTurnId}`,
      at: now,
      turnId: body.childTurnId,
      number: 1,
      input,
      actorId: parent.turn(turnId)?.actorId ?? null,
      limits: null,
      ...(trace ? { trace } : {}),
      ...(conversation.length > 0 ? { conversation } : {}),
    },
  };
}

/** What a child sees of its parent's conversation: texts and files without tool calls, results, thoughts and requests of the runtime. */
function handedOver(messages: readonly Message[]): Message[] {
  const changed = new Map(
    messages.flatMap((message) =>
      message.role === "user" && message.replaces !== undefined ? [[message.replaces, message.content]] : [],
    ),
  );
  const kept = messages.flatMap((message) => {
    const { id, role, createdAt, origin, metadata } = message;
    if (role !== "user" && role !== "assistant") return [];
    if (role === "user" && (message.replaces !== undefined || metadata?.is_trace === true)) return [];
    const content = changed.get(id) ?? message.content;
    const given = typeof content === "string" ? content : content.map(ownPart);
    return given.length === 0 ? [] : [{ role, content: given, createdAt, origin }];
  });
  return kept.map((message, index) => ({ id: `seed:${index}`, ...message }) as Message);
}

/** Artifacts belong to the parent: of a file in one the child sees the name. */
function ownPart(part: ContentPart): ContentPart {
  if (part.type !== "file" || part.artifactId === undefined) return part;
  return { type: "text", text: `[file ${part.name ?? part.artifactId}]` };
}
