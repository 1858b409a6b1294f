import type { EffectClass, Json, JsonObject } from "../state/index.ts";
import type { DataSubject } from "./data-subject.ts";
import type { ParsedArguments } from "./parsed-arguments.ts";
import type { RunContext } from "./run-context.ts";

/**
 * The result of `reconcile` for an interrupted `once` call: it took effect (with this result), it did not (and the model may try again),
 * the code can run again and continue from `run.noted` without repeating an effect, or it is unknown. `resume` applies after the end of a
 * process; after an error of the code, and in a queued tool, it counts as unknown.
 */
export type Reconciliation =
  | { readonly done: true; readonly result: unknown }
  | { readonly done: false }
  | { readonly resume: true }
  | { readonly unknown: true };

/** Removes resolved secrets from a text: each becomes `[secret:<name>]`. */
export type Redact = (text: string) => string;

/** The arguments of `execute` and `reconcile`. */
export interface ResolvedArguments {
  readonly args: unknown;
  /** Applied to every result and error of the tool before it is cut, stored or shown. */
  readonly redact: Redact;
}

/** A tool that runs in this process. Created by `defineTool`; frozen. */
export interface Tool<Args = unknown> {
  readonly kind: "function";
  readonly name: string;
  readonly description: string;
  readonly effect: EffectClass;
  /** Milliseconds per attempt; enforced by the runtime. */
  readonly timeoutMs: number;
  /** The queue whose workers run the calls, in any process. Default: calls run in the process of their agent. */
  readonly queue?: string;
  /** Priority of calls in the queue: the lowest runs first, equal ones in the order in which they were added. Default 0. */
  readonly priority?: number;
  /** How many calls of this tool may run at a time in one process. Default: unlimited. */
  readonly concurrency?: number;
  /** Maximum number of attempts, including the first. */
  readonly maxAttempts: number;
  /** Characters (UTF-16 units) of output shown to the model; longer output is stored as an artifact. */
  readonly maxOutputCharacters: number;
  /** Whether a person has to approve a call with these checked arguments, before secrets are resolved. */
  readonly needsApproval: boolean | ((args: Json, run: RunContext) => boolean | Promise<boolean>);
  /** Milliseconds after which an undecided call is refused. Default: never. */
  readonly approvalExpiresAfterMs?: number;
  /** `required`: a call runs only with credentials. */
  readonly auth?: "required";
  /** A successful call ends the turn with its result as the answer. */
  readonly endsTurn?: true;
  /** The parameters as shown to the model, without secrets. */
  readonly jsonSchema: JsonObject;
  /**
   * Fragments of a JSON Schema that are shown to the model but not checked, each with its path and the reason: broken patterns,
   * references out of the schema. Default: none.
   */
  readonly unchecked?: readonly string[];
  /** The model does not see the tool in its prompt; it calls it through `call_tool` (`deferredTools`). Default: it sees it. */
  readonly deferred?: true;
  /**
   * For `call_tool`: whether a call through this tool means the deferred tool of that name. Such a call is gated, journalled and run as a
   * call of that tool. Default: calls mean the tool itself.
   */
  readonly forwards?: (name: string) => boolean;
  /**
   * For tools that share connections, for instance to one server; they have the same function. Each runtime with such a tool calls it once
   * when it starts, and calls the returned function in `shutdown()`: after the last one has, the connections are closed. Default: none.
   */
  readonly holdConnections?: () => () => Promise<void>;
  /**
   * Removes what the tool keeps of an owner or agent who is deleted. Tools that share it have the same function, which is called once.
   * Default: it keeps nothing.
   */
  readonly forget?: (subject: DataSubject) => void | Promise<void>;
  /** Reads and checks the model's arguments, with the schema's own asynchronous checks. Never rejects. */
  parse(argumentsText: string): Promise<ParsedArguments>;
  /** The text of a call for the person who decides on it. Never throws. */
  describeCall(args: Json): string;
  /**
   * The arguments for `execute`: a copy of the journalled JSON with the secrets added. Called right before each attempt. Rejects with
   * `ToolNotStartedError` if a secret cannot be resolved before `run.signal` is aborted; the error contains the secret's name but never
   * its value.
   */
  resolveArguments(json: Json, run: RunContext): ResolvedArguments | Promise<ResolvedArguments>;
  /** Strings are sent to the model unchanged, other values as JSON text, `undefined` as "". */
  execute(args: Args, run: RunContext): unknown;
  reconcile?(args: Args, run: RunContext): Promise<Reconciliation>;
  /** Stops work that a call has started elsewhere, when the call's turn ends first. */
  cancel?(args: Args, run: RunContext): Promise<void>;
}
