import { AgentStopError, InvalidInputError, LeaseLostError, TurnInterruptedError } from "../errors/index.ts";
import type { LanguageModel } from "../model/index.ts";
import type { Json, ModelResponse } from "../state/index.ts";
import type { GenerateInput, RunAgent } from "../tools/index.ts";
import type { CheckedCall } from "./drafts.ts";

/** What a guard decides. Nothing lets the value pass; `block` is the reason; `rewrite` is the value in its place. */
export type GuardVerdict<Value = string> = undefined | { readonly block: string } | { readonly rewrite: Value };

/** The run that a guard belongs to. */
export interface GuardContext {
  /** The agent whose turn is running. */
  readonly agent: RunAgent;
  /** The current turn. */
  readonly turnId: string;
  /** The current step, from 1. */
  readonly step: number;
  /** The user's prompt of this turn, as text. */
  readonly prompt: string;
  /** The actor who started the turn; `null` if none was named. */
  readonly actorId: string | null;
  /** Aborted when the turn is stopped. */
  readonly signal: AbortSignal;
  /**
   * Makes a model call on the agent's budget. The call is journalled: a rerun with the same prompt returns the first answer. `model`:
   * another model, whose price is that of the runtime. In a guard it rejects with `UnsupportedError` for results of tools with a queue,
   * and if the budget has no room beside the answer that is being checked.
   */
  readonly generate: (
    request: GenerateInput,
    options?: { readonly model?: LanguageModel | undefined },
  ) => Promise<ModelResponse>;
}

/** A part of a tool's result, before it is stored and before the model sees it. */
export interface GuardedResult {
  /** The call that gave it. */
  readonly call: CheckedCall;
  /** `text` is what the model reads, whole also where it is cut; `structured` is JSON text; `file` is a file that is text. */
  readonly part: "text" | "structured" | "file";
  /** The content of the part. */
  readonly text: string;
  /** Whether the call has failed. */
  readonly isError: boolean;
}

/** Checks where hooks cannot change anything. A guard that throws blocks. */
export interface PluginGuards {
  /**
   * Called once with the text of each message of a user, also with those that arrive during the turn, before a model sees it. A blocked
   * message stops the turn. What is rewritten stays so in later turns; the store keeps the original too.
   */
  readonly input?: ((text: string, run: GuardContext) => GuardVerdict | Promise<GuardVerdict>) | undefined;
  /**
   * Called with the arguments that a call will run with, after all hooks and before an approval is asked, and again with arguments that a
   * person has edited. A blocked call never runs, and the model reads the reason.
   */
  readonly toolCall?:
    | ((call: CheckedCall, run: GuardContext) => GuardVerdict<object> | Promise<GuardVerdict<object>>)
    | undefined;
  /** Called with each part of a result, also of subagents and client tools, before it is stored. A blocked result is an error. */
  readonly toolResult?:
    | ((result: GuardedResult, run: GuardContext) => GuardVerdict | Promise<GuardVerdict>)
    | undefined;
  /**
   * Called with the text of an answer before it is stored, shown or used. It is not streamed. A blocked answer stops the turn, and its tool
   * calls do not run.
   */
  readonly output?: ((text: string, run: GuardContext) => GuardVerdict | Promise<GuardVerdict>) | undefined;
  /** Whether subagents must have this plugin, with the same guards. Default false. */
  readonly subagents?: boolean | undefined;
}

/** The guards of one plugin. */
export interface RegisteredGuards {
  readonly plugin: string;
  readonly guards: PluginGuards;
}

/** The guards of all plugins, in the order of the plugins. Throws `InvalidInputError` for values that are not guards. */
export function registerGuards(
  plugins: readonly { readonly name: string; readonly guards?: PluginGuards | undefined }[],
): readonly RegisteredGuards[] {
  return Object.freeze(
    plugins.flatMap(({ name, guards }) => {
      if (guards === undefined) return [];
      if (typeof guards !== "object" || guards === null) {
        throw new InvalidInputError(`plugin "${name}": guards must be an object with ${guardFields.join(", ")}`);
      }
      for (const [field, value] of Object.entries(guards) as [string, unknown][]) {
        const right = field === "subagents" ? "boolean" : "function";
        if (!guardFields.includes(field)) {
          throw new InvalidInputError(
            `plugin "${name}": unknown guard "${field.slice(0, 64)}"; the guards are ${guardFields.join(", ")}`,
          );
        }
        if (value !== undefined && typeof value !== right) {
          throw new InvalidInputError(`plugin "${name}": guards.${field} is a ${typeof value}; expected a ${right}`);
        }
      }
      return [Object.freeze({ plugin: name, guards })];
    }),
  );
}

const guardFields: readonly string[] = [
  "input",
  "toolCall",
  "toolResult",
  "output",
  "subagents",
] satisfies (keyof PluginGuards)[];

/** A verdict that was checked: user code may return anything, and only `undefined` lets a value pass. */
export type CheckedVerdict<Value> =
  | { readonly kind: "pass" }
  | { readonly kind: "block"; readonly reason: string }
  | { readonly kind: "rewrite"; readonly value: Value };

/**
 * Calls a guard and checks what it returns; each field is read once. An error, and anything that is not a verdict, blocks. Rejects only
 * when the turn or the activation has ended.
 */
export async function verdictOf<Value extends string | Json | object>(
  ask: () => GuardVerdict<Value> | Promise<GuardVerdict<Value>>,
  isValue: (value: unknown) => value is Value,
): Promise<CheckedVerdict<Value>> {
  try {
    const given: unknown = await ask();
    if (given === undefined) return { kind: "pass" };
    if (typeof given !== "object" || given === null) return { kind: "block", reason: invalidVerdict };
    const { block, rewrite } = given as Readonly<Record<string, unknown>>;
    if (block !== undefined) {
      return {
        kind: "block",
        reason: typeof block === "string" && block.trim() !== "" ? block : "it is not permitted",
      };
    }
    return isValue(rewrite) ? { kind: "rewrite", value: rewrite } : { kind: "block", reason: invalidVerdict };
  } catch (error) {
    // The activation or its turn has ended, so that there is nothing to decide.
    if (error instanceof LeaseLostError || error instanceof TurnInterruptedError) throw error;
    if (error instanceof AgentStopError) return { kind: "block", reason: error.message };
    // The text of another error may contain what the guard has to keep back.
    return { kind: "block", reason: `the check failed (${error instanceof Error ? error.name : typeof error})` };
  }
}

const invalidVerdict = "the check returned no verdict; expected nothing, { block: reason } or { rewrite: value }";

/** Text in place of a value that a guard has blocked. */
export function blockedText(what: string, plugin: string, reason: string): string {
  return `${what} was blocked by the guard "${plugin}": ${reason.replace(/\.$/, "")}.`;
}
