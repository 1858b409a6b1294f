import { InvalidInputError } from "../../errors/index.ts";
import type { Entry } from "../../state/index.ts";
import type { StoredTree } from "../../stores/index.ts";

/** A point at which a tree can be forked: before the model call of a step, or after what is stored of a turn. */
export interface ForkPoint {
  /** The turn of the root agent, from 1. */
  readonly turn: number;
  /** The step whose model call the fork makes, from 1; `null` for the end of the turn or, while it is open, its last stored entry. */
  readonly step: number | null;
  /** Id of the turn. */
  readonly turnId: string;
  /** Whether the turn is open at this point, so that the fork continues it; otherwise it needs an input. */
  readonly isOpen: boolean;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The cursor of the commit, as the inspector's feed and `runtime.follow` count them. */
  readonly cursor: number;
  /** The model that the step called; `null` for the end of a turn. */
  readonly model: string | null;
}

/** Where the stored rows are cut: everything before `cursor`, and of the root's row at `cursor` its first `entries`. */
export interface CutPoint extends ForkPoint {
  readonly entries: number;
}

type Rows = Pick<StoredTree, "rootAgentId" | "rows">;

/** The points at which a tree can be forked, in order. */
export function forkPoints(tree: Rows): readonly ForkPoint[] {
  return cutPoints(tree).map(({ entries: _entries, ...point }) => point);
}

/** The point that `at` names. Throws `InvalidInputError` with the valid points. */
export function cutPointAt(
  tree: Rows,
  { turn, step }: { readonly turn: number; readonly step?: number | undefined },
): CutPoint {
  const points = cutPoints(tree);
  const found = points.find((point) => point.turn === turn && point.step === (step ?? null));
  if (found) return found;
  const asked = step === undefined ? `turn ${turn}` : `turn ${turn}, step ${step}`;
  throw new InvalidInputError(`at names ${asked}, which "${tree.rootAgentId}" does not have; ${pointsText(points)}`);
}

/** The points as a text: `it can be forked at 1:1 to 1:3, 1, 2:1, 2`. */
export function pointsText(points: readonly ForkPoint[]): string {
  if (points.length === 0) return "it has no turn yet";
  const turns = Map.groupBy(points, ({ turn }) => turn);
  const words = [...turns].map(([turn, ofTurn]) => {
    const steps = ofTurn.flatMap(({ step }) => step ?? []);
    const [first] = steps;
    const last = steps.at(-1);
    const range = first === undefined ? "" : `${turn}:${first}${last === first ? "" : ` to ${turn}:${last}`}, `;
    return `${range}${turn}`;
  });
  return `it can be forked at ${words.join(", ")}`;
}

function cutPoints({ rootAgentId, rows }: Rows): CutPoint[] {
  const points: CutPoint[] = [];
  let open: { turn: number; turnId: string; step: number } | undefined;
  let end: CutPoint | undefined;
  for (const { agentId, cursor, entries } of rows) {
    if (agentId !== rootAgentId) continue;
    for (const [index, entry] of entries.entries()) {
      const { at } = entry;
      if (entry.type === "turn.started") open = { turn: entry.number, turnId: entry.turnId, step: 0 };
      if (!open) continue;
      const { turn, turnId } = open;
      const step = stepBegunBy(entry);
      if (step && step.step > open.step) {
        open.step = step.step;
        points.push({ turn, step: step.step, turnId, isOpen: true, at, cursor, model: step.model, entries: index });
      }
      const hasEnded = entry.type === "turn.ended";
      end = { turn, step: null, turnId, isOpen: !hasEnded, at, cursor, model: null, entries: index + 1 };
      if (!hasEnded) continue;
      points.push(end);
      open = undefined;
    }
  }
  // Everything that is stored belongs to the past of the open turn, also rows of its subagents.
  if (open && end) points.push({ ...end, cursor: (rows.at(-1)?.cursor ?? 0) + 1, entries: 0 });
  return points;
}

/** The step of which this is the first intent, granted or refused. */
function stepBegunBy(entry: Entry): { readonly step: number; readonly model: string | null } | undefined {
  if (entry.type === "model.requested") return { step: entry.step, model: entry.model };
  if (entry.type === "intent.refused" && entry.intent === "model.requested") return { step: entry.step, model: null };
  return undefined;
}
