import type { EffectClass, Json, JsonObject } from "../state/index.ts";
import type { ParsedArguments } from "./parsed-arguments.ts";
import type { RunContext } from "./run-context.ts";

/**
 * The answer of `reconcile` about an interrupted `once` call: it took effect (with this result), it did not (and may
 * run again), or that is not known.
 */
export type Reconciliation =
  | { readonly done: true; readonly result: unknown }
  | { readonly done: false }
  | { readonly unknown: true };

/** Removes resolved secrets from a text: each becomes `[secret:<name>]`. */
export type Redact = (text: string) => string;

/** The arguments of `execute` and `reconcile`. */
export interface ResolvedArguments {
  readonly args: unknown;
  /** Applied to every result and error of the tool before it is cut, stored or shown. */
  readonly redact: Redact;
}

/** A tool that runs in our own process. Made by `defineTool`; frozen. */
export interface Tool<Args = unknown> {
  readonly kind: "function";
  readonly name: string;
  readonly description: string;
  readonly effect: EffectClass;
  /** Milliseconds per attempt; enforced by the runtime. */
  readonly timeoutMs: number;
  /**
   * Its calls are jobs of this queue, run by the queue's workers in any process. Default: they run in the process of their agent.
   */
  readonly queue?: string;
  /** Priority of its calls in their queue, the lowest first; calls of one priority in the order in which they came. Default 0. */
  readonly priority?: number;
  /** How many calls of this tool may run at a time in one process. Default: unlimited. */
  readonly concurrency?: number;
  /** Attempts in all, the first included. */
  readonly maxAttempts: number;
  /** Characters (UTF-16 units) of output that the model sees; the rest goes into an artifact. */
  readonly maxOutputCharacters: number;
  /** Whether a person has to approve a call with these checked arguments, before secrets are resolved. */
  readonly needsApproval: boolean | ((args: Json, run: RunContext) => boolean | Promise<boolean>);
  /** Milliseconds after which a call without a decision is refused. Default: never. */
  readonly approvalExpiresAfterMs?: number;
  /** `required`: it runs only with credentials. */
  readonly auth?: "required";
  /** The parameters as the model sees them, without secrets. */
  readonly jsonSchema: JsonObject;
  /**
   * Parts of a JSON Schema that are shown to the model and not checked, each with its path and the reason: broken patterns,
   * references out of the schema. Default none.
   */
  readonly unchecked?: readonly string[];
  /** Reads and checks the model's arguments, with the schema's own asynchronous checks. Never rejects. */
  parse(argumentsText: string): Promise<ParsedArguments>;
  /** A call in words for the person who decides on it. Never throws. */
  describeCall(args: Json): string;
  /**
   * The arguments for `execute` from the journalled ones: a copy of the same JSON, with the secrets added. Called right
   * before each attempt. Rejects with `ToolNotStartedError` when a secret cannot be resolved before `run.signal`
   * aborts; the error names the secret but never contains its value.
   */
  resolveArguments(json: Json, run: RunContext): ResolvedArguments | Promise<ResolvedArguments>;
  /** Strings go to the model as they are, other values as JSON text, `undefined` as "". */
  execute(args: Args, run: RunContext): unknown;
  reconcile?(args: Args, run: RunContext): Promise<Reconciliation>;
  /** Ends what a call has begun elsewhere, when its turn ends before the call. */
  cancel?(args: Args, run: RunContext): Promise<void>;
}
