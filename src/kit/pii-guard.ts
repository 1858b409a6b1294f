import { flagRule, nameRule, oneOfRule, optionsOf } from "../base/index.ts";
import type { GuardVerdict, Plugin } from "../hooks/index.ts";
import { guard } from "./guard.ts";
import { type GuardedPlace, guardedPlaces, guardsAt, placesRule, someOfRule } from "./guarded-places.ts";
import { findPersonalData, type PersonalData, personalDataKinds } from "./personal-data.ts";

export type { PersonalData } from "./personal-data.ts";

/** Options of `piiGuard()`. */
export interface PiiGuardOptions {
  /** `redact` puts `[email]`, `[card]` and so on in place of what is found; `block` blocks the whole value. Default `redact`. */
  readonly action?: "redact" | "block" | undefined;
  /** What is looked for. Default: `email`, `card` (with its checksum), `iban` (with its checksum), `phone`, `ssn`. */
  readonly kinds?: readonly PersonalData[] | undefined;
  /** Where it is looked for. Default: `input`, `toolCall`, `toolResult` and `output`. */
  readonly at?: readonly GuardedPlace[] | undefined;
  /** Whether subagents must have this plugin too. Default false. */
  readonly subagents?: boolean | undefined;
  /** Name of the plugin. Default `pii`. */
  readonly name?: string | undefined;
}

/**
 * Redacts or blocks personal data by its form: emails, payment cards, IBANs, phone numbers, and social security numbers of the United
 * States. Names and addresses have no form, and are not found. Throws `InvalidInputError` for invalid options.
 */
export function piiGuard(given?: PiiGuardOptions): Plugin {
  const options = optionsOf<PiiGuardOptions>(given, "piiGuard()", {
    rules: {
      action: oneOfRule("redact", "block"),
      kinds: someOfRule(personalDataKinds),
      at: placesRule,
      subagents: flagRule,
      name: nameRule,
    },
    instead: { strategy: "action", types: "kinds", phase: "at" },
  });
  const { action = "redact", kinds = personalDataKinds, at = guardedPlaces, subagents, name = "pii" } = options;
  const check = async (text: string): Promise<GuardVerdict> => {
    const found = await findPersonalData(text, kinds);
    if (found.length === 0) return undefined;
    if (action === "block") {
      return { block: `it contains personal data (${[...new Set(found.map(({ kind }) => kind))].join(", ")})` };
    }
    let redacted = "";
    let end = 0;
    for (const { kind, from, to } of found) {
      redacted += `${text.slice(end, from)}[${kind}]`;
      end = to;
    }
    return { rewrite: redacted + text.slice(end) };
  };
  return guard({ name, ...guardsAt(at, check), subagents });
}
