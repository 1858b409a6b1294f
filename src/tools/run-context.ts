import { z } from "zod";
import { type OptionsSchema, nameRule, oneOfRule, optionsOf, reading, textRule } from "../base/index.ts";
import { budgetRule, type Limits, limitsOf } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import {
  type Artifact,
  type CallSettings,
  callSettingsRules,
  checkedFilePart,
  type Content,
  contentSchema,
  type FileArtifact,
  isTextType,
  type Json,
  LONGEST_CONTENT,
  type ModelResponse,
  take,
  takeJson,
  takeText,
  textOfBase64,
  type TraceEntry,
} from "../state/index.ts";
import type { AskedRequest, AskInput, BillInput, ToolAnswer } from "./call-in-parts.ts";
import type { TurnSchedules } from "./turn-schedules.ts";

/** The agent for which a tool runs. */
export interface RunAgent {
  /** Id of the agent. */
  readonly agentId: string;
  /** Name of the agent's definition. */
  readonly name: string;
  /** Id of the agent that spawned it; `null` for a root. */
  readonly parentAgentId: string | null;
  /** Id of the root of its tree. */
  readonly rootAgentId: string;
  /** 0 for a root agent. */
  readonly depth: number;
  /** The session that it was created in; `null` if there is none. */
  readonly sessionId: string | null;
  /** The tenant of the runtime. */
  readonly tenant: string;
  /** The owner of its tree; `null` if it was created without one. */
  readonly ownerId: string | null;
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

/**
 * A model call made by a tool, a hook or compaction. Settings that are left out are the provider's; those of the agent's definition are
 * not used.
 */
export interface GenerateInput
  extends Pick<
    CallSettings,
    "maxOutputTokens" | "temperature" | "stopSequences" | "reasoningEffort" | "providerOptions"
  > {
  /** The prompt, oldest first. */
  readonly messages: readonly { readonly role: "system" | "user" | "assistant"; readonly content: Content }[];
  /** Name of a model that the runtime knows. Default: the agent's own. */
  readonly model?: string | undefined;
}

export interface ArtifactInput {
  /** Name of the artifact; its versions share it. */
  readonly name: string;
  /** A media type, for instance `text/plain`. */
  readonly contentType: string;
  /** The content: a text, or bytes. */
  readonly content: string | Uint8Array;
}

/** A version that `run.saveArtifact()` stored. */
export interface SavedArtifact {
  /** Id of this version. */
  readonly artifactId: string;
  /**
   * Counted from 1 per name. In a queued tool the artifact is stored when the call ends: `version` is the one that it gets then, unless
   * another call saves an artifact of that name in between.
   */
  readonly version: number;
}

export interface SpawnOptions {
  /** Identifies the child within this call. */
  readonly key: string;
  /** The child's own limits; never more than its parent has left. Default: none. */
  readonly budget?: unknown;
  /**
   * What the child sees of this agent. `none`: only its input. `conversation`: before its input, the texts and files of the user and the
   * assistant since the last compaction; no tool calls, results and thoughts. The child pays for them. Default `none`.
   */
  readonly history?: "none" | "conversation" | undefined;
}

/** A subagent that a tool has started. */
export interface SpawnedChild {
  /** Id of the child. */
  readonly agentId: string;
  /**
   * Settles when the child's turn has ended, with any `status`. Rejects in a queued tool, because waiting would block a worker while the
   * child runs; return `run.await(child)` there.
   */
  readonly result: Promise<{ readonly status: string; readonly text: string }>;
}

export interface AwaitOptions {
  /** Text that precedes the child's answer in the call's result, for instance a heading. Default: none. */
  readonly prefix?: string | undefined;
}

/**
 * The context of a tool call. Valid only during the call: afterwards every access throws `InvalidInputError`. The runtime implements it.
 */
export interface RunContext {
  /** The agent that made the call. */
  readonly agent: RunAgent;
  /** Id of the turn that contains the call. */
  readonly turnId: string;
  /** The step that contains the call, from 1. */
  readonly step: number;
  /** Id of the call within its agent. */
  readonly callId: string;
  /** 1 for the first attempt; higher only with `maxAttempts` above 1, after a restart, or after the answer to a question. */
  readonly attempt: number;
  /** The last value that the code of this call noted, also before a restart; `null` if there is none. */
  readonly noted: Json;
  /** The decision on the code's last question; `null` if it has asked none. */
  readonly answer: ToolAnswer | null;
  /** The user's prompt of this turn, as text. */
  readonly prompt: string;
  /** Earlier calls of the turn, in the order in which they ended. */
  readonly previousTools: readonly PreviousTool[];
  /** The turn so far. */
  readonly trace: readonly TraceEntry[];
  /** In a queued tool: the result of the worker's own `resolveAuth`, because credentials are never queued. */
  readonly auth: Auth | undefined;
  /** The actor who started the turn; `null` if none was given. Unlike `auth` it is stored, so it is the same after a restart. */
  readonly actorId: string | null;
  /** Fill level of the model's context window after its last answer, from 0 to 100; `null` if unknown. */
  readonly contextPercent: number | null;
  /** Aborted on timeout, interrupt, and when the agent stops. */
  readonly signal: AbortSignal;
  /** The same for every repeat of this call: pass it to a receiver that drops duplicates. */
  readonly idempotencyKey: string;
  /** Reports progress to followers (`tool.progress`). Ephemeral: never stored. */
  readonly progress: (update: Json) => void;
  /**
   * Calls a model on the agent's budget. The call is journalled: a rerun with the same prompt gets the first answer. Throws
   * `UnsupportedError` in a queued tool, because the agent's budget and journal may be in another process.
   */
  readonly generate: (request: GenerateInput) => Promise<ModelResponse>;
  /** Stores an artifact. In a queued tool it is stored when the call ends, and not at all if the attempt fails and is repeated. */
  readonly saveArtifact: (artifact: ArtifactInput) => Promise<SavedArtifact>;
  /** One of the agent's own artifacts: by its id, or the newest version of a name. `undefined` if there is none. */
  readonly artifact: (idOrName: string) => Promise<Artifact | undefined>;
  /** The agent's own artifacts without their content, all versions, oldest first. */
  readonly artifacts: () => Promise<readonly Omit<Artifact, "content">[]>;
  /**
   * Starts a subagent. The same `key` within one call identifies the same child: spawning twice is one spawn. Rejects with
   * `NotFoundError` for a definition that the runtime does not have. In a queued tool the child starts when the tool returns
   * `run.await(child)`.
   */
  readonly spawn: (definition: unknown, input: string, options: SpawnOptions) => Promise<SpawnedChild>;
  /**
   * Leaves the call's result to a child: `return run.await(child)`. The call then waits for the child, across restarts and without
   * holding a slot, and the child's answer becomes the call's result. Throws `InvalidInputError` for a child that this turn has not spawned.
   */
  readonly await: (child: Pick<SpawnedChild, "agentId">, options?: AwaitOptions) => AwaitedChild;
  /**
   * Stores the progress of the code, up to 1 Mi characters of JSON; resolves when it is stored. If the code runs again (after a crash, or
   * with an answer), it reads the last value as `run.noted`. Rejects with `UnsupportedError` in a queued tool.
   */
  readonly note: (value: Json) => Promise<void>;
  /**
   * Asks for a decision: `return run.ask({ kind, prompt })`. The turn then waits for the decision, across restarts and without holding a
   * slot; then the code runs again, with `run.answer`. Note values that the code needs then before asking. Throws `UnsupportedError` in a
   * queued tool.
   */
  readonly ask: (question: AskInput) => AskedRequest;
  /**
   * Adds tokens and money that were used elsewhere to the turn's account and those above it, unchecked, even beyond a limit. Resolves
   * when it is stored. Rejects with `UnsupportedError` in a queued tool.
   */
  readonly bill: (use: BillInput) => Promise<void>;
  /** Later turns of the agent itself. Its methods reject with `UnsupportedError` in a queued tool and in a stateless turn. */
  readonly schedules: TurnSchedules;
}

/** The user or service on whose behalf a turn runs. */
export interface Auth {
  /** Stored: used for ownership, approvals and audit. */
  readonly actorId: string;
  /** Never stored, queued, logged, traced or shown; resolved again after a restart. */
  readonly credentials?: unknown;
}

/**
 * A copy with readable but non-enumerable `credentials`: JSON, spreading and console output leave them out. The runtime does this to
 * every `Auth`.
 */
export function concealCredentials(auth: Auth): Auth {
  const concealed = { actorId: auth.actorId };
  if (auth.credentials !== undefined) {
    Object.defineProperty(concealed, "credentials", { value: auth.credentials, enumerable: false });
  }
  return Object.freeze(concealed);
}

/**
 * Created by `run.await(child)`; a tool returns it so that the child's answer becomes its result. The call then waits for the child
 * without holding a slot.
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

/** Longest content of an artifact that every store accepts, in UTF-16 units; enough for a tool result of 100 MB. */
export const LONGEST_ARTIFACT = 2 ** 27;
/** Largest progress update, in characters: it is sent to all followers. */
const LARGEST_UPDATE = 2 ** 20;
const LONGEST_NAME = 1_000;

const wholeText = z.string().refine((text) => text.isWellFormed(), { message: "holds half of a surrogate pair" });
const nameSchema = wholeText.min(1).max(LONGEST_NAME);
const artifactInputSchema = z.object({
  name: nameSchema,
  contentType: nameSchema,
  content: wholeText.max(LONGEST_ARTIFACT),
});
const generateSettings = [
  "maxOutputTokens",
  "temperature",
  "stopSequences",
  "reasoningEffort",
  "providerOptions",
] as const satisfies (keyof GenerateInput)[];
const generateInputSchema = z.object({
  messages: z.array(z.object({ role: z.enum(["system", "user", "assistant"]), content: contentSchema })).min(1),
  maxOutputTokens: z.number().int().positive().max(1_000_000_000).optional(),
  model: z.string().optional(),
  temperature: z.unknown().optional(),
  stopSequences: z.unknown().optional(),
  reasoningEffort: z.unknown().optional(),
  providerOptions: z.unknown().optional(),
});

const awaitOptionsSchema = z.object({ prefix: z.string().optional() }).optional();

// Parse values that user code passes to its run. Each throws `InvalidInputError` with the mistake and its path.

export function takeArtifact(given: unknown): ArtifactInput {
  const what = "the artifact that run.saveArtifact() was given";
  const maxSize = LONGEST_ARTIFACT + 4 * LONGEST_NAME;
  const bytes = reading(what, () => bytesOf(given));
  if (bytes === undefined) return take(artifactInputSchema, given, what, { maxSize });
  const length = 4 * Math.ceil(bytes.byteLength / 3);
  if (length > LONGEST_ARTIFACT) {
    throw new InvalidInputError(
      `${what} cannot be taken: content: ${bytes.byteLength} bytes are ${length} characters of base64; at most ${LONGEST_ARTIFACT} can be kept`,
    );
  }
  const { name, contentType } = given as ArtifactInput;
  // A copy, so that later changes of the bytes have no effect.
  return { ...take(artifactInputSchema, { name, contentType, content: "" }, what), content: Buffer.from(bytes) };
}

function bytesOf(given: unknown): Uint8Array | undefined {
  const { content } = (given ?? {}) as Readonly<Partial<Record<keyof ArtifactInput, unknown>>>;
  return content instanceof Uint8Array ? content : undefined;
}

/** The content of an artifact as it is stored: text, or base64. Bytes of a text type are text. */
export function storedContent({
  content,
  contentType,
}: Pick<ArtifactInput, "content" | "contentType">): Pick<FileArtifact, "content" | "encoding"> {
  if (typeof content === "string") return { content };
  const data = Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString("base64");
  const text = isTextType(contentType) ? textOfBase64(data) : undefined;
  return text === undefined ? { encoding: "base64", content: data } : { content: text };
}

export function takeGenerateInput(given: unknown): GenerateInput {
  const maxSize = LONGEST_CONTENT;
  const what = "the request that run.generate() was given";
  const input = take(generateInputSchema, given, what, { maxSize }) as GenerateInput;
  for (const setting of generateSettings) {
    if (input[setting] !== undefined) callSettingsRules[setting](input[setting], `${what}: ${setting}`);
  }
  for (const [index, { content }] of input.messages.entries()) {
    for (const part of typeof content === "string" ? [] : content) {
      const checked = part.type === "file" ? checkedFilePart(part) : undefined;
      if (checked === undefined || checked.ok) continue;
      throw new InvalidInputError(`${what} cannot be taken: messages[${index}]: ${checked.problem}`);
    }
  }
  return input;
}

export function takeArtifactName(given: unknown): string {
  return takeText(given, "the id or name that run.artifact() was given");
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
    history: oneOfRule("none", "conversation"),
  },
  needed: ["key"],
  instead: { name: "key", id: "key", limits: "budget" },
};

/** The checked input and options of `run.spawn()`. */
export interface CheckedSpawn {
  readonly key: string;
  readonly input: string;
  readonly limits: Limits;
  /** Without it, the child sees only its input. */
  readonly history?: "conversation";
}

/** Throws `InvalidInputError` for invalid arguments of `run.spawn()`. */
export function checkedSpawn(input: unknown, options: unknown): CheckedSpawn {
  const prompt = reading("run.spawn()", () => textRule(input, "run.spawn(): the child's input"));
  const { key, budget, history } = optionsOf<SpawnOptions>(options, "run.spawn()", spawnOptionsSchema);
  const limits = limitsOf((budget ?? {}) as Parameters<typeof limitsOf>[0]);
  return { key, input: String(prompt), limits, ...(history === "conversation" ? { history } : {}) };
}
