import { type Content, type Message, textOf } from "../state/index.ts";
import type { HookDrafts } from "./drafts.ts";
import { blockedText, type GuardVerdict, type PluginGuards, verdictOf } from "./guards.ts";
import type { HookContext, Hooks } from "./hooks.ts";

/**
 * Hooks that guard what enters the conversation from outside: inputs, messages that arrive during the turn, and reports of background
 * subagents. Each message is checked once: before the first step, or before the first step after its arrival.
 */
export function inputHooks(plugin: string, { input, toolResult }: PluginGuards): Hooks | undefined {
  if (!input && !toolResult) return undefined;
  const check = async (
    draft: Pick<HookDrafts["beforeLlm"], "rewrite" | "stop">,
    messages: readonly Message[],
    run: HookContext,
  ): Promise<void> => {
    for (const message of messages) {
      const text = textOf(message.content);
      const isReport = message.origin.startsWith(REPORT);
      const ask = (): GuardVerdict | Promise<GuardVerdict> => {
        if (!isReport) return input?.(text, run);
        const call = { callId: message.id, name: message.origin.slice(REPORT.length), arguments: null };
        return toolResult?.({ call, part: "text", text, isError: false }, run);
      };
      const verdict = await verdictOf(ask, isText);
      if (verdict.kind === "pass" || (verdict.kind === "rewrite" && verdict.value === text)) continue;
      const what = isReport ? "A report of a subagent" : "The input";
      if (verdict.kind === "rewrite") {
        draft.rewrite(message.id, withText(message.content, verdict.value));
        run.emitWarning("guard_input", `${what.toLowerCase()} was rewritten by the guard "${plugin}"`);
        continue;
      }
      const reason = blockedText(what, plugin, verdict.reason);
      draft.rewrite(message.id, `[${what} was blocked by a guard.]`);
      run.emitWarning("guard_input", reason);
      if (!isReport) draft.stop(reason);
    }
  };
  return {
    ...(input
      ? {
          // For an input that steers the turn, `beforeLlm` is where it is checked.
          afterUserInput: async (draft, run) => {
            const isSteered = draft.messages.some(({ id }) => id.startsWith(`${run.turnId}:in:`));
            const own = draft.messages.filter(({ id }) => id === `${run.turnId}:in`);
            if (!isSteered) await check(draft, own, run);
          },
        }
      : {}),
    beforeLlm: async (draft, run) => {
      const since = draft.messages.findLastIndex(({ role }) => role === "assistant") + 1;
      const arrived = draft.messages.slice(since).filter((message) => isForeign(message, run.turnId));
      await check(
        draft,
        arrived.filter(({ origin }) => (origin.startsWith(REPORT) ? toolResult : input)),
        run,
      );
    },
  };
}

/** The origin of a report, before the name of the subagent. */
const REPORT = "subagent:";

/** Whether the message has come from outside after the turn began. */
function isForeign({ role, id, origin }: Message, turnId: string): boolean {
  if (role !== "user" || origin.startsWith("hook:") || origin === "runtime") return false;
  return origin.startsWith(REPORT) || id.startsWith(`${turnId}:in:`);
}

/** Images and files stay, behind the text. */
function withText(content: Content, text: string): Content {
  if (typeof content === "string") return text;
  return [{ type: "text", text }, ...content.filter(({ type }) => type !== "text")];
}

const isText = (value: unknown): value is string => typeof value === "string" && value.isWellFormed();
