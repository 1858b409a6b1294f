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

/** A tool that runs in our own process. Made by `defineTool`; frozen. */
export interface Tool<Args = unknown> {
  readonly kind: "function";
  readonly name: string;
  readonly description: string;
  readonly effect: EffectClass;
  /** Milliseconds per attempt; enforced by the runtime. */
  readonly timeoutMs: number;
  /** Calls of this tool that may run at a time in one process; absent: unlimited. */
  readonly concurrency?: number;
  /** Attempts in all, the first included. */
  readonly maxAttempts: number;
  /** Characters (UTF-16 units) of output that the model sees; the rest goes into an artifact. */
  readonly maxOutputCharacters: number;
  /** The parameters as the model sees them. */
  readonly jsonSchema: JsonObject;
  /** Reads and checks the model's arguments. Synchronous; never throws. */
  parse(argumentsText: string): ParsedArguments;
  /** The arguments for `execute` from what was journalled: the same JSON. Transforms do not run again after a restart. */
  fromJournal(json: Json): unknown;
  /** Strings go to the model as they are, other values as JSON text, `undefined` as "". */
  execute(args: Args, run: RunContext): unknown;
  reconcile?(args: Args, run: RunContext): Promise<Reconciliation>;
}
