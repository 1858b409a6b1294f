import { agentAccountId } from "../budget/index.ts";
import type { EntryOf, TurnState, WakingReport } from "../state/index.ts";
import type { BudgetMove, Post } from "../stores/index.ts";
import type { Host } from "./host.ts";

type TurnEnd = Pick<EntryOf<"child.ended">, "outcome" | "stopReason" | "text" | "error">;

/** Tells the agent that spawned this one how its turn ended. Later turns of a child are its own. */
export function endPosts(host: Host, turn: TurnState, end: TurnEnd): Post[] {
  const { parentAgentId, parentTurnId, parentStep, parentCallId, agentId, background, definition } = host.identity;
  if (parentAgentId === null || turn.number > 1) return [];
  const at = host.clock.now();
  const leavesWork = host.background.running().length > 0 || turn.leavingIds.length > 0;
  const child = { childId: agentId, childTurnId: turn.turnId, ...end, ...(leavesWork ? { leavesWork } : {}) };
  if (background) {
    const { onEnd } = background;
    const key = `child.reported:${turn.turnId}`;
    const { actorId } = turn;
    return [
      {
        agentId: parentAgentId,
        item: { kind: "child.reported", key, at, name: definition.name, onEnd, actorId, ...child },
      },
    ];
  }
  if (parentTurnId === null || parentStep === null) return [];
  const key = `child.ended:${turn.turnId}`;
  return [
    {
      agentId: parentAgentId,
      item: { kind: "child.ended", key, at, parentTurnId, step: parentStep, callId: parentCallId, ...child },
    },
  ];
}

/** Accounts under the turn's own that go on when it ends: of children in the background, and of whoever left some behind. */
export function backgroundMoves(turn: TurnState): BudgetMove[] {
  const { accountId, backgroundIds, leavingIds, waking } = turn;
  const childIds = new Set([...backgroundIds, ...leavingIds, ...waking.map(({ childId }) => childId)]);
  if (childIds.size === 0) return [];
  return [{ type: "background", accountId, childAccountIds: [...childIds].map(agentAccountId) }];
}

/** Reports that no model call of the turn has seen, and that call for one more. Whoever ended it by hand wants quiet. */
export function wakingAfter(turn: TurnState, { stopReason }: Pick<TurnEnd, "stopReason">): readonly WakingReport[] {
  return stopReason === "user_requested" ? [] : turn.waking;
}
