import { randomUUID } from "node:crypto";
import type { AgentRecord, InboxItem } from "../../state/index.ts";
import { type MarkAsk, type MarkEffect, markEffect, situationOf } from "./mark-rules.ts";
import { isHeld } from "./marks.ts";
import type { AbortCommand } from "./ports.ts";
import type { Tables } from "./tables.ts";

/** In whose name, and why. */
interface MarkWords {
  readonly by: string;
  readonly now: number;
  readonly isHurried?: boolean;
  /** `source`: what all aborts of one command have in their keys. */
  readonly abort?: Pick<AbortCommand, "reason" | "stopReason"> & {
    readonly isSuperseded?: boolean | undefined;
    readonly source: string;
  };
}

/**
 * Asks an agent and everything below it for what a command means there; null: of it and all below it nothing, but that they
 * go on where they are held no longer. `isBound`: whether the agent works for the turn that is open on the first one, which
 * those in the background do not. Gives those whose inbox got something, and whether a mark of the first one has changed.
 */
export function markTree(
  tables: Tables,
  first: AgentRecord,
  askOf: (at: AgentRecord, isBound: boolean) => MarkAsk | null,
  words: MarkWords,
): { readonly posted: string[]; readonly isMarked: boolean } {
  const posted: string[] = [];
  let isMarked = false;
  const visit = (at: AgentRecord, isBound: boolean, heldAbove: { before: boolean; after: boolean }): void => {
    const key = { tenant: at.tenant, agentId: at.agentId };
    const ask = askOf(at, isBound);
    if (ask === null && heldAbove.before === heldAbove.after) return;
    const effect = markEffect(situationOf(at, heldAbove), ask ?? "none");
    if (effect.isEnded || effect.isPaused !== (at.pause !== null)) {
      tables.putAgent(markedRecord(at, effect, words));
      isMarked ||= at === first;
    }
    const added = itemsOf(at, effect, { ...words, isFirst: at === first }).filter((item) =>
      tables.addToInbox(key, item),
    );
    if (added.length > 0 && at.status !== "shutdown") posted.push(at.agentId);
    const held = { before: heldAbove.before || at.pause !== null, after: heldAbove.after || effect.isPaused };
    for (const child of tables.childrenOf(key)) {
      const isOfTurn = child.parentTurnId === at.openTurnId && !child.background;
      visit(child, at === first ? isOfTurn : isBound, held);
    }
  };
  const above = first.parentAgentId === null ? undefined : { tenant: first.tenant, agentId: first.parentAgentId };
  const isHeldAbove = above !== undefined && isHeld(tables, tables.agent(above));
  visit(first, true, { before: isHeldAbove, after: isHeldAbove });
  return { posted, isMarked };
}

function markedRecord(at: AgentRecord, { isPaused, isEnded }: MarkEffect, { by, now, abort: words }: MarkWords) {
  const pause = isPaused ? (at.pause ?? { by, at: now }) : null;
  if (!isEnded || at.openTurnId === null || !words) return { ...at, pause };
  // Of its own: the mark above goes with the turn above, which may be over first.
  return { ...at, pause, abort: { by, at: now, turnId: at.openTurnId, reason: words.reason } };
}

function itemsOf(
  { agentId, openTurnId }: AgentRecord,
  { told }: MarkEffect,
  { by, now, isHurried = false, isFirst, abort: words }: MarkWords & { readonly isFirst: boolean },
): InboxItem[] {
  return told.flatMap((kind): InboxItem[] => {
    if (kind === "pause") {
      return [{ kind, key: switchKey(kind, agentId), at: now, by, ...(isHurried ? { now: true } : {}) }];
    }
    if (kind === "resume") return [{ kind, key: switchKey(kind, agentId), at: now, by }];
    if (!words) return [];
    const { source, reason, stopReason } = words;
    const superseded = words.isSuperseded && isFirst ? { isSuperseded: true } : {};
    return [
      { kind, key: `${source}:${openTurnId}`, at: now, turnId: openTurnId, by, reason, stopReason, ...superseded },
    ];
  });
}

/**
 * Pause and resume alternate, so none of them is a double of another; the record's own field tells the second pause
 * from the first, and the key must not make the two one item when both come within a millisecond.
 */
export function switchKey(kind: "pause" | "resume", agentId: string): string {
  return `${kind}:${agentId}:${randomUUID()}`;
}
