import type { PromptRow } from "../feed/wire.ts";
import { addressOf, go, info } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { oneLine } from "./untrusted.tsx";
import { shortId } from "./format.ts";

/** A point of a run at which a fork begins; `step` is `null` for the end of the turn. */
export interface PointInRun {
  readonly turn: number;
  readonly step: number | null;
}

/** The point as the address of the page has it. */
export function addressOfPoint({ turn, step }: PointInRun): string {
  return step === null ? `${turn}` : `${turn}:${step}`;
}

export function pointWords({ turn, step }: PointInRun): string {
  return step === null ? `after turn ${turn}` : `before turn ${turn}, step ${step}`;
}

export function turnNumber(turnId: string): number {
  return Number(turnId.slice(turnId.lastIndexOf("#") + 1)) || 0;
}

interface HereProps {
  readonly run: RunSession;
  readonly agentId: string;
  readonly call: Pick<PromptRow, "turnId" | "step" | "cursor">;
}

/** A link to the form that forks the run before a model call. Forks begin at steps of the root agent. */
export function ForkHere({ run, agentId, call }: HereProps) {
  const isRoot = agentId === run.runId;
  const step = isRoot ? call : stepOfRoot(run, call.cursor);
  if (info.value?.source === "file" || !step) return null;
  const point = { turn: turnNumber(step.turnId), step: step.step };
  return (
    <button type="button" onClick={() => go({ view: "forks", fork: addressOfPoint(point), agent: null })}>
      {isRoot ? "Fork from here" : `Fork ${pointWords(point)} of the root agent`}
    </button>
  );
}

/** The last step that the root agent began before a moment. */
function stepOfRoot(
  { log }: RunSession,
  cursor: number,
): { readonly turnId: string; readonly step: number } | undefined {
  for (let at = log.countUpTo(cursor) - 1; at >= log.first; at -= 1) {
    const entry = log.agentOf(at) === 0 ? log.entry(at) : undefined;
    if (entry?.type === "model.requested") return entry;
  }
  return undefined;
}

/** Where a run comes from, if it is a fork. A file has no other run to which a link could lead. */
/** The mark of an agent whose tools do not run. */
export function Stubbed({ agent: { isStubbed } }: { readonly agent: { readonly isStubbed?: true | undefined } }) {
  if (!isStubbed) return null;
  return (
    <span class="tag" title="No tool runs: stubs give their results">
      stubbed
    </span>
  );
}

export function Origin({ runId, origin }: { readonly runId: string; readonly origin: ShownOrigin | undefined }) {
  if (!origin) return null;
  const name = <code>{oneLine(shortId(origin.runId), 40)}</code>;
  const isGone = origin.isStored === false;
  const isLinked = !isGone && info.value?.source !== "file";
  return (
    <span class="quiet fork-origin">
      fork of{" "}
      {isLinked ? (
        <a href={addressOf({ page: "run", runId: origin.runId, at: null, agent: null, fork: null })}>{name}</a>
      ) : (
        name
      )}
      {isGone && ", which is no longer stored,"} {pointWords(origin)}
      {isLinked && (
        <>
          {" "}
          <a href={addressOf({ page: "compare", runId: origin.runId, otherId: runId })}>
            Compare<span class="visually-hidden"> {oneLine(runId, 60)} with its origin</span>
          </a>
        </>
      )}
    </span>
  );
}

interface ShownOrigin extends PointInRun {
  readonly runId: string;
  /** `undefined` if it is not known. */
  readonly isStored?: boolean | undefined;
}
