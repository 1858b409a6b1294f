import { faultPoint } from "../base/index.ts";
import { AgentStopError } from "../errors/index.ts";
import type { HookContext, RegisteredHook, ReplacingMessage } from "../hooks/index.ts";
import {
  type EntryOf,
  type HeldMessage,
  hookKeyOf,
  type HookName,
  type HookPatch,
  type Message,
  stepMetadata,
} from "../state/index.ts";
import { redactError } from "../tools/index.ts";
import { reportMessage } from "./background-calls.ts";
import { settleAbandonedRun } from "./generate.ts";
import { hookContextOf } from "./hook-context.ts";
import { appendWarnings, type Host, type Warning } from "./host.ts";
import { stopSignalOf } from "./stored-error.ts";
import { thrownBy } from "./user-errors.ts";

/** The hooks of one name at one point of a turn. */
export interface HookPoint {
  readonly turnId: string;
  readonly step: number;
  readonly hook: Exclude<HookName, "beforeEachTool">;
  /** The call that they review. */
  readonly callId?: string;
  /** The message of an input that arrived during the turn. */
  readonly inputId?: string;
}

/** One hook's draft, and its outcome. */
interface HookDraft<Draft> {
  readonly draft: Draft;
  readonly outcome: () => {
    readonly added: readonly ReplacingMessage[];
    readonly patch: Omit<HookPatch, "addedMessageIds" | "held">;
  };
}

type HookCode<Draft> = (draft: Draft, run: HookContext) => void | Promise<void>;

/** The hooks to run, and the draft that each of them receives. */
export interface HookSet<Draft> {
  readonly registered: readonly RegisteredHook<HookCode<Draft>>[];
  draft(): HookDraft<Draft>;
}

/**
 * Runs the hooks of one name that are not committed yet, in registration order and as many as existed at the start of the turn. A
 * hook that a newer program no longer has is skipped. Each hook runs after everything before it is committed, and is in flight
 * like a call: an agent that is recovered in this process joins it. Returns false if a hook ended the turn or the turn was
 * stopped.
 */
export async function runHooks<Draft>(
  host: Host,
  place: HookPoint,
  hooks: HookSet<Draft>,
  signal: AbortSignal,
): Promise<boolean> {
  const { turnId, hook, callId, inputId } = place;
  const due = host.turn(turnId)?.hooks[hook] ?? 0;
  for (let index = 0; index < due; index += 1) {
    if (signal.aborted) return false;
    const applied = callId === undefined ? host.turn(turnId)?.appliedHooks : host.call(turnId, callId)?.reviews;
    if (applied?.includes(hookKeyOf(hook, index, inputId))) continue;
    if (!(await runHook(host, { ...place, index }, hooks, signal))) return false;
  }
  return !signal.aborted;
}

/** Runs one hook; returns false if it ended the turn or the turn was stopped. */
export async function runHook<Draft>(
  host: Host,
  place: HookPoint & { readonly index: number },
  hooks: HookSet<Draft>,
  signal: AbortSignal,
): Promise<boolean> {
  const { turnId, step, hook, index, callId, inputId } = place;
  const { plugin, hook: code } = hooks.registered[index] ?? { plugin: "gone", hook: () => undefined };
  await host.committed();
  if (signal.aborted) return false;
  const run = hookKeyOf(hook, index, callId ?? inputId);
  try {
    const { added, patch, warnings } = await host.inFlight.run(
      `${turnId}:${step}:${run}`,
      signal,
      async (callSignal) => {
        const { draft, outcome } = hooks.draft();
        const warnings: Warning[] = [];
        await code(draft, hookContextOf(host, { turnId, step, run, warnings }, callSignal));
        return { ...outcome(), warnings };
      },
    );
    if (signal.aborted) return false;
    faultPoint("hook.effect");
    appendWarnings(host, turnId, warnings);
    settleAbandonedRun(host, place, (one) => one === `${run}@${step}`);
    const named = added.map((message, count) => ({ ...message, messageId: `${turnId}:${step}:${run}:${count}` }));
    const isHeld = (host.turn(turnId)?.openCallIds.length ?? 0) > 0;
    const messages = isHeld ? [] : named.map((message) => messageOf(host, turnId, step, plugin, message));
    host.append(
      {
        type: "hook.applied",
        turnId,
        step,
        ...(callId === undefined ? {} : { callId }),
        ...(inputId === undefined ? {} : { inputId }),
        hook,
        plugin,
        index,
        patch: {
          ...patch,
          addedMessageIds: messages.map(({ id }) => id),
          ...(isHeld && named.length > 0 ? { held: named } : {}),
        },
      },
      { messages },
    );
    faultPoint("hook.result");
    return true;
  } catch (error) {
    if (signal.aborted || !(error instanceof AgentStopError)) {
      throw thrownBy(`the hook ${hook} of "${plugin}"`, redactError(error, host.redactorOf(turnId)));
    }
    host.append({ type: "stop.signalled", turnId, signal: stopSignalOf(error, `hook:${plugin}`) });
    return false;
  }
}

/** A message that a hook added, for history. */
function messageOf(
  host: Host,
  turnId: string,
  step: number,
  plugin: string,
  { messageId, role, content, replaces }: HeldMessage & Pick<ReplacingMessage, "replaces">,
): Message {
  const metadata = stepMetadata(host.identity.agentId, { turnId, step, isTrace: true });
  const common = { id: messageId, content, createdAt: host.clock.now(), origin: `hook:${plugin}`, metadata };
  return replaces === undefined ? { ...common, role } : { ...common, role: "user", replaces };
}

/** An input that arrived during the turn, for history. */
function inputMessage({ messageId, content, actorId, at }: EntryOf<"turn.steered">): Message {
  return { id: messageId, role: "user", content, createdAt: at, origin: actorId ?? "user" };
}

/**
 * Adds held messages to history: those of hooks that waited for the results of a round, reports of background children and inputs that
 * waited for the next model call. `except`: ids of messages that stay held.
 */
export function releaseHeld(host: Host, turnId: string, except: readonly string[] = []): void {
  const held = (host.turn(turnId)?.heldMessageIds ?? []).filter((id) => !except.includes(id));
  if (held.length === 0) return;
  const step = Math.max(1, host.turn(turnId)?.step ?? 1);
  const messages = host.memory(turnId).entries.flatMap((entry) => {
    if (entry.type === "child.reported")
      return held.includes(entry.messageId) ? [reportMessage(host, entry, step)] : [];
    if (entry.type === "turn.steered") return held.includes(entry.messageId) ? [inputMessage(entry)] : [];
    if (entry.type !== "hook.applied") return [];
    return (entry.patch.held ?? [])
      .filter(({ messageId }) => held.includes(messageId))
      .map((message) => messageOf(host, turnId, entry.step, entry.plugin, message));
  });
  host.append({ type: "messages.released", turnId, messageIds: messages.map(({ id }) => id) }, { messages });
}
