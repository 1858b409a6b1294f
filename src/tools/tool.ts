import type { EffectClass, Json, JsonObject } from "../state/index.ts";
import type { ParsedArguments } from "./parsed-arguments.ts";
import type { RunContext } from "./run-context.ts";

/**
 * What `reconcile` found out about a `once` call that was cut: it took effect (with this result), it did not (and may be
 * run again), or nobody can tell.
 */
export type Reconciliation =
  | { readonly done: true; readonly result: unknown }
  | { readonly done: false }
  | { readonly unknown: true };

/** Takes resolved secrets out of a text: each becomes `[secret:<name>]`. */
export type Redact = (text: string) => string;

/** What `execute` and `reconcile` are called with. */
export interface ResolvedArguments {
  readonly args: unknown;
  /** For every text that the tool gives, results and errors alike, before it is cut, stored or shown. */
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
   * Its calls are jobs on this queue: whoever works on it runs them, in any process. Absent: they run where their agent
   * does.
   */
  readonly queue?: string;
  /** Place of its calls in their queue, the lowest first; those of one priority in the order in which they came. Absent: 0. */
  readonly priority?: number;
  /** Calls of this tool that may run at a time in one process; absent: unlimited. */
  readonly concurrency?: number;
  /** Attempts in all, the first included. */
  readonly maxAttempts: number;
  /** Characters (UTF-16 units) of output that the model sees; the rest goes into an artifact. */
  readonly maxOutputCharacters: number;
  /** Whether a person has to approve a call with these checked arguments, before secrets are resolved. */
  readonly needsApproval: boolean | ((args: Json, run: RunContext) => boolean | Promise<boolean>);
  /** Milliseconds until a call that nobody decided on is refused; absent: never. */
  readonly approvalExpiresAfterMs?: number;
  /** `required`: it runs only where credentials are there. */
  readonly auth?: "required";
  /** The parameters as the model sees them, without secrets. */
  readonly jsonSchema: JsonObject;
  /**
   * Parts of a JSON Schema that the model sees and nobody checks, each with its place and the reason: patterns that cannot be
   * asked in linear time, references that lead out of it. Absent: there are none.
   */
  readonly unchecked?: readonly string[];
  /** Reads and checks the model's arguments. Synchronous; never throws. */
  parse(argumentsText: string): ParsedArguments;
  /** A call in words for the person who decides on it. Never throws. */
  describeCall(args: Json): string;
  /**
   * The arguments for `execute` from what was journalled: a copy of the same JSON, with the secrets added. Called right
   * before each attempt. Rejects with `ToolNotStartedError` when a secret cannot be had before `run.signal` aborts; the
   * error names the secret and never tells its value.
   */
  resolveArguments(json: Json, run: RunContext): Promise<ResolvedArguments>;
  /** Strings go to the model as they are, other values as JSON text, `undefined` as "". */
  execute(args: Args, run: RunContext): unknown;
  reconcile?(args: Args, run: RunContext): Promise<Reconciliation>;
}
