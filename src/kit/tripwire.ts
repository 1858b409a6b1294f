import { flagRule, nameRule, optionsOf, ruleOf } from "../base/index.ts";
import type { GuardContext, Plugin } from "../hooks/index.ts";
import { boundedMatches, checkValue, isValueSchema, type ValueSchema } from "../tools/index.ts";
import { guard } from "./guard.ts";
import { type GuardedPlace, guardsAt, placesRule } from "./guarded-places.ts";

/** Options of `tripwire()`. */
export interface TripwireOptions {
  /**
   * What must not occur: a regular expression, or a function that returns true. A schema is what must be: a value that does not fit is
   * blocked. A JSON text is parsed before it is checked; the arguments of a call are JSON.
   */
  readonly when: RegExp | ((text: string, run: GuardContext) => boolean | Promise<boolean>) | ValueSchema;
  /** Where it is checked, for instance `["input", "output"]`. */
  readonly at: readonly GuardedPlace[];
  /** Why a value was blocked, for people and for the model. Default: the tripwire's name. */
  readonly reason?: string | undefined;
  /** Whether subagents must have this plugin too. Default false. */
  readonly subagents?: boolean | undefined;
  /** Name of the plugin. Default `tripwire`. */
  readonly name?: string | undefined;
}

/** How long a regular expression may search one text, in milliseconds; then the text is blocked. */
const SEARCH_MS = 2_000;

/** Blocks values by a regular expression, a function or a schema. Throws `InvalidInputError` for invalid options. */
export function tripwire(given: TripwireOptions): Plugin {
  const options = optionsOf<TripwireOptions>(given, "tripwire()", {
    rules: {
      when: ruleOf(
        "a regular expression, a function or a schema",
        (value) => value instanceof RegExp || typeof value === "function" || isValueSchema(value),
      ),
      at: placesRule,
      reason: nameRule,
      subagents: flagRule,
      name: nameRule,
    },
    needed: ["when", "at"],
    instead: { pattern: "when", schema: "when", check: "when", on: "at", phase: "at", message: "reason" },
  });
  const { when, at, name = "tripwire", subagents } = options;
  const { reason = `the tripwire "${name}" was touched` } = options;
  const isTouched = touchedBy(when);
  const guards = guardsAt(at, async (text, run) => ((await isTouched(text, run)) ? { block: reason } : undefined));
  return guard({ name, ...guards, subagents });
}

function touchedBy(when: TripwireOptions["when"]): (text: string, run: GuardContext) => Promise<boolean> {
  if (when instanceof RegExp) {
    // A sticky or global expression would begin where the last search ended.
    const pattern = new RegExp(when.source, when.flags.replaceAll(/[gy]/g, ""));
    return async (text, { signal }) => {
      const deadline = performance.now() + SEARCH_MS;
      const found = await boundedMatches([text], (one) => pattern.test(one), { signal, most: 1, deadline });
      return found === undefined || found.matches.length > 0 || found.tested === 0;
    };
  }
  // Schemas of arktype are functions too.
  if (isValueSchema(when)) return async (text) => !(await checkValue(when, parsed(text))).ok;
  return async (text, run) => {
    const verdict: unknown = await when(text, run);
    // Anything but false is a mistake of the function, and must not let the value pass.
    return verdict !== false;
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
