import { z } from "zod";
import { type OptionsSchema, nameRule, optionsOf, reading, textRule } from "../base/index.ts";
import { budgetRule, type Limits, limitsOf } from "../budget/index.ts";
import {
  type Content,
  contentSchema,
  type Json,
  LONGEST_CONTENT,
  type ModelResponse,
  take,
  takeJson,
  takeText,
  type TraceEntry,
} from "../state/index.ts";
import type { AskedRequest, AskInput, BillInput, ToolAnswer } from "./call-in-parts.ts";

/** The agent for which a tool runs. */
export interface RunAgent {
  /** The agent. */
  readonly agentId: string;
  /** Name of its definition. */
  readonly name: string;
  /** The agent that spawned it; null for a root. */
  readonly parentAgentId: string | null;
  /** The root of its tree. */
  readonly rootAgentId: string;
  /** 0 for a root agent. */
  readonly depth: number;
  /** The group that it was created in; `null` if there is none. */
  readonly sessionId: string | null;
  /** The tenant of the runtime. */
  readonly tenant: string;
}

/** An earlier tool call of the same turn. */
export interface PreviousTool {
  /** Id of the call. */
  readonly callId: string;
  /** Name of the tool. */
  readonly name: string;
  /** How it ended, for instance `success`, `error` or `outcome_unknown`. */
  readonly outcome: string;
}

/** A model call made by a tool, a hook or compaction. */
export interface GenerateInput {
  /** The prompt, oldest first. */
  readonly messages: readonly { readonly role: "system" | "user" | "assistant"; readonly content: Content }[];
  /** Upper bound of tokens to generate, which is what the runtime reserves. Default: the agent's own. */
  readonly maxOutputTokens?: number | undefined;
  /** Name of a model that the runtime knows. Default: the agent's own. */
  readonly model?: string | undefined;
}

export interface ArtifactInput {
  /** Versions of one artifact share their name. */
  readonly name: string;
  /** A media type, for instance `text/plain`. */
  readonly contentType: string;
  /** The content, as text. */
  readonly content: string;
}

/** The version that `run.saveArtifact()` has stored. */
export interface SavedArtifact {
  /** Id of this version. */
  readonly artifactId: string;
  /**
   * Counts from 1 over the artifacts of one name. In a queued tool the artifact is stored with the end of the call: `version`
   * is the one that it has then, unless another call saves one of that name meanwhile.
   */
  readonly version: number;
}

export interface SpawnOptions {
  /** Names the child within this call. */
  readonly key: string;
  /** Limits of the child's own; never more than what its parent has left. Default: none. */
  readonly budget?: unknown;
}

/** A subagent that a tool has started. */
export interface SpawnedChild {
  /** The child. */
  readonly agentId: string;
  /**
   * Settles when the child's turn has ended, with any `status`. In a queued tool it rejects, because it would block
   * a worker for as long as the child runs. Return `run.await(child)` there.
   */
  readonly result: Promise<{ readonly status: string; readonly text: string }>;
}

export interface AwaitOptions {
  /** Text before the child's answer in the call's result, for instance a heading. Default: none. */
  readonly prefix?: string | undefined;
}

/**
 * The run that called a tool, as the tool sees it. It is valid only during the call: afterwards every access throws
 * `InvalidInputError`. The runtime implements it.
 */
export interface RunContext {
  /** The agent that made the call. */
  readonly agent: RunAgent;
  /** The turn that the call is part of. */
  readonly turnId: string;
  /** The step that asked for the call, from 1. */
  readonly step: number;
  /** Id of the call within its agent. */
  readonly callId: string;
  /** 1 for the first attempt; more only with `maxAttempts` above 1, after a restart, or after the answer to a question. */
  readonly attempt: number;
  /** The last progress that the code of this call noted, also before a restart; `null` if it has noted nothing. */
  readonly noted: Json;
  /** The decision on the last question of the code; `null` if it has asked nothing. */
  readonly answer: ToolAnswer | null;
  /** The user's prompt of this turn, as text. */
  readonly prompt: string;
  /** Earlier calls of the turn, in the order of their ends. */
  readonly previousTools: readonly PreviousTool[];
  /** The turn so far. */
  readonly trace: readonly TraceEntry[];
  /** In a queued tool: the result of the worker's own `resolveAuth`, since credentials never travel. */
  readonly auth: Auth | undefined;
  /** The actor who started the turn; `null` if none was named. Stored, unlike `auth`, and so the same after a restart. */
  readonly actorId: string | null;
  /** How full the model's context window was after its last answer, from 0 to 100; null when that is not known. */
  readonly contextPercent: number | null;
  /** Aborted on time-out, interrupt, and when the agent stops. */
  readonly signal: AbortSignal;
  /** The same for every repeat of this call: hand it to a receiver that drops duplicates. */
  readonly idempotencyKey: string;
  /** Reports progress to followers (`tool.progress`). Ephemeral: never stored. */
  readonly progress: (update: Json) => void;
  /**
   * A model call on the agent's budget. It is journalled: a rerun with the same prompt gets the first answer. In a queued tool it
   * throws `UnsupportedError`, since the agent, with its budget and journal, may live in another process.
   */
  readonly generate: (request: GenerateInput) => Promise<ModelResponse>;
  /** In a queued tool the artifact is stored with the call's end, and not at all where the attempt fails and is repeated. */
  readonly saveArtifact: (artifact: ArtifactInput) => Promise<SavedArtifact>;
  /**
   * Starts a subagent. The same `key` within one call names the same child: spawning twice is one spawn. Rejects with
   * `NotFoundError` for a definition that the runtime was not given. In a queued tool it begins when the tool returns
   * `run.await(child)`.
   */
  readonly spawn: (definition: unknown, input: string, options: SpawnOptions) => Promise<SpawnedChild>;
  /**
   * For the tool to return: `return run.await(child)`. The call then waits for the child, through restarts and without holding a
   * slot, and the child's answer is the call's result. Throws `InvalidInputError` for a child that this turn has not spawned.
   */
  readonly await: (child: Pick<SpawnedChild, "agentId">, options?: AwaitOptions) => AwaitedChild;
  /**
   * Stores how far the code has come, up to 1 Mi characters of JSON; resolves when it is stored. Where the code runs again
   * (after a crash, or with an answer) it reads the last one as `run.noted`. In a queued tool it rejects with `UnsupportedError`.
   */
  readonly note: (value: Json) => Promise<void>;
  /**
   * For the tool to return: `return run.ask({ kind, prompt })`. The turn then waits for the decision, through restarts and
   * without holding a slot; then the code runs again, with `run.answer`. What it has to know by then it notes before. In a
   * queued tool it throws `UnsupportedError`.
   */
  readonly ask: (question: AskInput) => AskedRequest;
  /**
   * Counts tokens and money that were used elsewhere on the turn's account and those above it, as they were told: beyond a
   * limit too. Resolves when it is stored. In a queued tool it rejects with `UnsupportedError`.
   */
  readonly bill: (use: BillInput) => Promise<void>;
}

/** The actor of a turn. */
export interface Auth {
  /** Stored: used for ownership, approvals and audit. */
  readonly actorId: string;
  /** Never stored, queued, logged, traced or shown: resolved again after a restart. */
  readonly credentials?: unknown;
}

/**
 * A copy whose `credentials` can be read but are not enumerable: JSON, spreading and console output leave them out. The
 * runtime does this to every `Auth`.
 */
export function concealCredentials(auth: Auth): Auth {
  const concealed = { actorId: auth.actorId };
  if (auth.credentials !== undefined) {
    Object.defineProperty(concealed, "credentials", { value: auth.credentials, enumerable: false });
  }
  return Object.freeze(concealed);
}

/**
 * A tool returns it to leave its result to a child that it has spawned; `run.await(child)` makes it. The call then waits for the
 * child without holding a slot, and the child's answer is its result.
 */
export class AwaitedChild {
  readonly childId: string;
  /** Text before the child's answer. */
  readonly prefix: string | undefined;

  constructor(childId: string, prefix?: string) {
    this.childId = childId;
    this.prefix = prefix;
  }
}

/** Longest content of an artifact that every store can hold, in UTF-16 units: 100 MB of a tool's result fit. */
export const LONGEST_ARTIFACT = 2 ** 27;
/** Largest update of progress, in characters: it is sent to all followers. */
const LARGEST_UPDATE = 2 ** 20;
const LONGEST_NAME = 1_000;

const wholeText = z.string().refine((text) => text.isWellFormed(), { message: "holds half of a surrogate pair" });
const nameSchema = wholeText.min(1).max(LONGEST_NAME);
const artifactInputSchema = z.object({
  name: nameSchema,
  contentType: nameSchema,
  content: wholeText.max(LONGEST_ARTIFACT),
});
const generateInputSchema = z.object({
  messages: z.array(z.object({ role: z.enum(["system", "user", "assistant"]), content: contentSchema })).min(1),
  maxOutputTokens: z.number().int().positive().max(1_000_000_000).optional(),
  model: z.string().optional(),
});

const awaitOptionsSchema = z.object({ prefix: z.string().optional() }).optional();

// Parse values that user code hands to its run. Each throws `InvalidInputError` with the mistake and its place.

export function takeArtifact(given: unknown): ArtifactInput {
  const maxSize = LONGEST_ARTIFACT + 4 * LONGEST_NAME;
  return take(artifactInputSchema, given, "the artifact that run.saveArtifact() was given", { maxSize });
}

export function takeGenerateInput(given: unknown): GenerateInput {
  const maxSize = LONGEST_CONTENT;
  return take(generateInputSchema, given, "the request that run.generate() was given", { maxSize }) as GenerateInput;
}

export function takeUpdate(given: unknown): Json {
  return takeJson(given, "the update that run.progress() was given", { maxSize: LARGEST_UPDATE });
}

export function takeSpawnInput(given: unknown): string {
  return takeText(given, "the input that run.spawn() was given");
}

export function takeAwaitOptions(given: unknown): AwaitOptions | undefined {
  return given === undefined ? undefined : take(awaitOptionsSchema, given, "the options that run.await() was given");
}

const spawnOptionsSchema: OptionsSchema<SpawnOptions> = {
  rules: {
    key: (value, where) => nameRule(value, `${where}, which names the child within its call,`),
    budget: budgetRule,
  },
  needed: ["key"],
  instead: { name: "key", id: "key", limits: "budget" },
};

/** The checked input and options of `run.spawn()`. */
export interface CheckedSpawn {
  readonly key: string;
  readonly input: string;
  readonly limits: Limits;
}

/** Throws `InvalidInputError` for wrong arguments of `run.spawn()`. */
export function checkedSpawn(input: unknown, options: unknown): CheckedSpawn {
  const prompt = reading("run.spawn()", () => textRule(input, "run.spawn(): the child's input"));
  const { key, budget } = optionsOf<SpawnOptions>(options, "run.spawn()", spawnOptionsSchema);
  return { key, input: String(prompt), limits: limitsOf((budget ?? {}) as Parameters<typeof limitsOf>[0]) };
}
