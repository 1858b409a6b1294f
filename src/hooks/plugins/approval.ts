import { functionRule, optionsOf } from "../../base/index.ts";
import type { HookContext } from "../hook-context.ts";
import type { Plugin } from "../hooks.ts";
import type { CheckedCall } from "../views.ts";

export interface ApprovalOptions {
  /** `true` lets the call run; a text is the reason why not, told to the model; anything else denies it as well. */
  readonly decide: (call: CheckedCall, run: HookContext) => boolean | string | Promise<boolean | string>;
}

/** Lets code decide which tool calls may run. For people to decide, give the tool `needsApproval`. */
export function approval(options: ApprovalOptions): Plugin {
  const { decide } = optionsOf<ApprovalOptions>(options, "approval()", {
    rules: { decide: functionRule },
    needed: ["decide"],
  });
  return {
    name: "approval",
    hooks: {
      async beforeEachTool(draft, run) {
        const verdict: unknown = await decide(draft.call, run);
        if (verdict === true) return;
        draft.deny(typeof verdict === "string" && verdict.trim() !== "" ? verdict : "This call is not permitted.");
      },
    },
  };
}
