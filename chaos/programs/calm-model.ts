import { type CallOutcome, callIdOf, type StopSignal, type StoredError, textOf } from "../../src/state/index.ts";
import type { AgentEvidence } from "../../src/testing/simulation/evidence.ts";
import { childNames, receivesRejection } from "./cast.ts";
import { type Ended, entriesOf } from "./evidence-lines.ts";
import { budgetsOf, callsOf, type PlannedCall, type PlannedRound, type Program } from "./program.ts";

/** The deepest agents, which have no subagents. */
const AIDE_DEPTH = 2;
/** Subagents whose limits are reached. */
const limited: ReadonlySet<string> = new Set(["thrifty", "curbed"]);
const limitReasons = ["steps_limit", "token_limit", "cost_limit", "time_limit"] as const;

/**
 * Predicts turns from the program alone: the possible stop reasons and, if nothing can cut a turn short, every step and the
 * outcome of each call.
 */
export function calmFaults(ended: Ended): string[] {
  const { program, tree } = ended;
  const [root] = tree.agents;
  if (!root) return [];
  const reasons = reasonsOf(program);
  const faults = entriesOf(root, "turn.ended").flatMap((end) => {
    const { turnId, stopReason, error } = end;
    if (reasons.has(stopReason) || isGivenUp(ended, end)) return [];
    return [`${turnId} ended ${stopReason} (${error?.message}), for which there is no cause in its program`];
  });
  const ends = tree.agents.flatMap((agent) => entriesOf(agent, "turn.ended"));
  const isWhole = !ends.some((end) => isGivenUp(ended, end));
  return isCalm(program) && isWhole && faults.length === 0 ? turnFaults(root, 0, ended) : faults;
}

/** Workers' queues give up a turn or call during which two workers died or missed their heartbeats (F10). */
export function isGivenUp(
  { died, isQueued }: Ended,
  { signal, error }: { readonly signal?: StopSignal | null; readonly error: StoredError | null },
): boolean {
  const words = `${signal?.message ?? ""} ${error?.message ?? ""}`;
  // A call that may be repeated is given up after several deaths, which may all have hit the same one.
  if (died && error?.code === "process_ended") return true;
  return isQueued && (words.includes("was given up: the worker") || error?.code.startsWith("job_") === true);
}

function reasonsOf(program: Program): ReadonlySet<string> {
  const { hooks, acts, turns } = program;
  const has = (...deeds: string[]): boolean => [...hooks, ...acts].some(({ does }) => deeds.includes(does));
  return new Set([
    "completed",
    ...(has("throw") ? ["error"] : []),
    ...(has("stop") || callsOf(program).some(({ does }) => does === "stop") ? ["stop_requested"] : []),
    ...(has("abort", "abortTurn") || turns.some(({ sent }) => sent === "supersede") ? ["user_requested"] : []),
    ...(budgetsOf(program).length > 0 ? limitReasons : []),
  ]);
}

function isCalm(program: Program): boolean {
  const { hooks } = program;
  return reasonsOf(program).size === 1 && hooks.every(({ does }) => does !== "deny");
}

function turnFaults(agent: AgentEvidence, depth: number, ended: Ended): string[] {
  return entriesOf(agent, "turn.ended").flatMap((end) => {
    const { turnId, outcome, steps } = end;
    const input = agent.messages.find(({ id }) => id === `${turnId}:in`);
    const rounds = input === undefined ? [] : (JSON.parse(textOf(input.content)) as readonly PlannedRound[]);
    // A round without calls is a final answer.
    const last = rounds.findIndex(({ length }) => length === 0);
    const played = last < 0 ? rounds : rounds.slice(0, last);
    // An input that arrives during the last model call is seen by a further one: by its next attempt, if that call fails.
    const grants = entriesOf(agent, "model.requested").filter((entry) => entry.turnId === turnId);
    const steered = entriesOf(agent, "turn.steered").flatMap((entry) =>
      entry.turnId === turnId ? [grants.find(({ seq }) => seq > entry.seq)?.step ?? entry.step] : [],
    );
    const due = Math.max(played.length + 1, ...steered);
    if (outcome !== "completed" || steps !== due) {
      return [`${turnId} ended ${outcome} after ${steps} steps; it is completed after ${due}`];
    }
    return played.flatMap((round, index) =>
      round.flatMap((call, at) => callFaults(agent, { call, callId: callIdOf(turnId, index + 1, at), depth }, ended)),
    );
  });
}

interface Placed {
  readonly call: PlannedCall;
  readonly callId: string;
  readonly depth: number;
}

function callFaults(agent: AgentEvidence, { call, callId, depth }: Placed, ended: Ended): string[] {
  const settled = entriesOf(agent, "tool.settled").find((entry) => entry.callId === callId);
  const name = "child" in call ? call.child : call.tool;
  const allowed = outcomesOf({ call, callId, depth }, ended);
  const isWell = settled && (allowed.includes(settled.outcome) || isGivenUp(ended, settled));
  if (settled?.name !== name || !isWell) {
    return [
      `${callId} (${name}) ended ${settled?.outcome} (${settled?.error?.message}); due is ${allowed.join(" or ")}`,
    ];
  }
  const spawned = entriesOf(agent, "child.spawned").find((entry) => entry.callId === callId);
  const child = ended.tree.agents.find(({ agentId }) => agentId === spawned?.childId);
  return child && !limited.has(name) ? turnFaults(child, depth + 1, ended) : [];
}

function outcomesOf({ call, callId, depth }: Placed, { program, died }: Ended): readonly CallOutcome[] {
  const acted = program.acts.map(({ does }) => does);
  // A released agent is in the same state as one whose owner died.
  const isCut = died || acted.includes("restart");
  const name = "child" in call ? call.child : call.tool;
  if (depth === AIDE_DEPTH && childNames.has(name)) return ["not_found"];
  if ("child" in call) return limited.has(name) || name === "single" ? ["success", "error", "denied"] : ["success"];
  if (name === "subagent_wait") return ["success", "error"];
  if ((name === "approve" || name === "ask_user") && receivesRejection(callId)) return ["denied"];
  if (name === "ask_user") return ["success"];
  const isOnce = ["send", "send_queued", "book", "approve"].includes(name);
  const cut: readonly CallOutcome[] = isCut && isOnce ? ["outcome_unknown", "error"] : [];
  if (call.does === "refuse") return ["error", ...cut];
  const breaks = call.does === "fail" || (call.does === "generate" && name.endsWith("_queued"));
  // A paused agent starts no subagent; its tool gets an error.
  const held = call.does === "spawn" && acted.some((does) => does.startsWith("pause"));
  if (held) return ["success", "error", "outcome_unknown"];
  if (!breaks) return ["success", ...cut];
  if (name === "book") return ["success", ...cut];
  return [isOnce ? "outcome_unknown" : "error", ...cut];
}
