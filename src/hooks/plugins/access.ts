import { functionRule, listRule, optionsOf, textRule } from "../../base/index.ts";
import type { CheckedCall } from "../drafts.ts";
import type { HookContext, Plugin } from "../hooks.ts";

export interface ApprovalOptions {
  /** `true` allows the call; a text denies it and is the reason sent to the model; any other value denies it too. */
  readonly decide: (call: CheckedCall, run: HookContext) => boolean | string | Promise<boolean | string>;
}

/** Lets code decide which tool calls may run. To let people decide, set the tool's `needsApproval`. */
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

export interface TrustOptions {
  /** Ids of actors who may use the agent, or a function that decides. `actorId` is null if the caller named no actor. */
  readonly allow: readonly string[] | ((actorId: string | null, agentId: string) => boolean | Promise<boolean>);
}

const actorsRule = listRule("a list of actor ids, or a function", textRule);

/**
 * Ends a turn before its first model call unless its actor is trusted. The message of an untrusted actor stays in history, but is
 * never sent to the model.
 */
export function trust(options: TrustOptions): Plugin {
  const { allow } = optionsOf<TrustOptions>(options, "trust()", {
    rules: { allow: (value, where) => (typeof value === "function" ? value : actorsRule(value, where)) },
    needed: ["allow"],
  });
  const isTrusted = async (actorId: string | null, agentId: string): Promise<boolean> => {
    if (typeof allow !== "function") return actorId !== null && allow.includes(actorId);
    const verdict: unknown = await allow(actorId, agentId);
    return verdict === true;
  };
  return {
    name: "trust",
    hooks: {
      async afterUserInput(draft, { actorId, agent }) {
        if (await isTrusted(actorId, agent.agentId)) return;
        const who = actorId === null ? "a turn without an actor" : `actor "${actorId}"`;
        draft.stop(`${who} is not trusted by agent "${agent.agentId}"`);
      },
      async beforeLlm(draft, { agent, turnId }) {
        // Only turn inputs have an id of this form; the actor sent them.
        const inputs = draft.messages.filter(({ role, id }) => role === "user" && id.endsWith(":in"));
        const earlier = Map.groupBy(
          inputs.filter(({ id }) => id !== `${turnId}:in`),
          ({ origin }) => origin,
        );
        for (const [origin, messages] of earlier) {
          if (await isTrusted(origin === "user" ? null : origin, agent.agentId)) continue;
          for (const { id } of messages) draft.remove(id);
        }
      },
    },
  };
}
