import type { Entry, EntryOf } from "../../state/index.ts";
import { lineDiff } from "../line-diff.ts";
import { journalViolations } from "./journal-checks.ts";
import type { AskedPrompt, SimulatedEffect, SimulationLog, ToolRun } from "./log.ts";
import type { PlayedSimulation } from "./play-simulation.ts";
import { limitViolations, restViolations } from "./rest-checks.ts";
import type { SimulatedProgram } from "./program.ts";

/**
 * An abort of an ended turn stays in the inbox if the process died before it was read. A failed effect is that of a turn that fails.
 */
const explained = /: abort:\S+ left in its inbox$|: an effect failed: /u;

/** The violated rules of a played program, in words. */
export function simulationFaults(played: PlayedSimulation<unknown>): string[] {
  const { log, tree, results } = played;
  const settled = new Map(
    tree.agents.flatMap(({ entries }) => entries.filter(isSettled).map((entry) => [entry.callId, entry] as const)),
  );
  const faults = [
    ...log.faults,
    ...[...Map.groupBy(log.runs, ({ callId }) => callId).values()].flatMap((runs) => [
      ...repeatedEffects(runs),
      ...runs.flatMap((run) => runFaults(run, settled.get(run.callId))),
      ...approvalFaults(runs, log),
    ]),
    ...decisionFaults(log),
  ];
  if (results === undefined) return [...faults, ...unfinished(played)];
  return [
    ...faults,
    ...endFaults(played),
    ...restViolations(tree).filter((text) => !explained.test(text)),
    ...limitViolations(tree),
    ...tree.agents.flatMap(journalViolations),
  ];
}

function isSettled(entry: Entry): entry is EntryOf<"tool.settled"> {
  return entry.type === "tool.settled";
}

/** Effects of one call that took place more than once. */
function repeatedEffects(runs: readonly ToolRun[]): string[] {
  const [first] = runs;
  if (!first) return [];
  const all = runs.flatMap((run) => run.effects.map(({ effect }) => ({ run, effect })));
  return [...Map.groupBy(all, ({ effect }) => keyOf(effect)).values()].flatMap((same) => {
    const [one, two] = same;
    if (!one || !two) return [];
    const times = same.length === 2 ? "twice" : `${same.length} times`;
    const what = `\`${first.tool}\` took effect ${times} (${wordsOf(one.effect)}): `;
    if (one.run === two.run) return [`${what}in a single run of its code`];
    return [`${what}${endOf(one.run)}; ${reasonFor(first)}`];
  });
}

function reasonFor({ effect, callId }: ToolRun): string {
  if (effect === "keyed") return `class \`keyed\`, but the receiver ignored the key (${callId})`;
  if (effect === "none") return "class `none`, but it has an effect outside";
  return "class `once`, but its `reconcile` let the call run again";
}

/** How a run of a tool ended that was followed by another one. */
function endOf({ isKilled, end, error, isOverdue }: ToolRun): string {
  if (isKilled) return "killed after the effect, before its result";
  if (isOverdue) return "its time was over after the effect, and it ran again";
  if (end === "threw") return `it threw "${error}" after the effect, and ran again`;
  return "it ran again after the effect";
}

function runFaults(run: ToolRun, settled: EntryOf<"tool.settled"> | undefined): string[] {
  const { tool, effects, effect, end, isKilled, isOverdue, timeoutMs, error } = run;
  const faults: string[] = [];
  const [first] = effects;
  const late = effects.find(({ isLate }) => isLate);
  if (late) {
    faults.push(
      `\`${tool}\` took effect (${wordsOf(late.effect)}) after its call was aborted: it does not stop at \`run.signal\``,
    );
  }
  if (isOverdue && end === undefined && !isKilled) {
    faults.push(`\`${tool}\` never ended: it was still running after its ${timeoutMs} ms and ignored \`run.signal\``);
  } else if (isOverdue) {
    faults.push(`\`${tool}\` did not end within its ${timeoutMs} ms`);
  }
  if (first && effect === "none") {
    faults.push(
      `\`${tool}\` took effect (${wordsOf(first.effect)}), but its class is \`none\`: a call may run again at any time; declare it \`keyed\` or \`once\``,
    );
  }
  if (first && !late && end !== undefined && settled?.outcome === "error" && !isOverdue) {
    const how = end === "threw" ? `then threw "${error}"` : "then reported an error";
    faults.push(
      `\`${tool}\` took effect (${wordsOf(first.effect)}) and ${how}: the model was told that the call failed`,
    );
  }
  return faults;
}

/** A call that needs an approval runs once a person has approved it, with the approved arguments. */
function approvalFaults(runs: readonly ToolRun[], { requests }: SimulationLog): string[] {
  const [first] = runs;
  if (!first) return [];
  const request = [...requests.values()].find(({ callId, kind }) => callId === first.callId && kind === "approval");
  if (!request) return first.needsApproval ? [`\`${first.tool}\` ran without an approval`] : [];
  if (request.accepted.length > 0 && !request.accepted.includes("approved")) {
    return [`\`${first.tool}\` ran, but its request was ${request.accepted.join(" and ")}`];
  }
  const approved = request.arguments;
  return runs.flatMap((run) => {
    const ran = differing(approved, run.args);
    if (ran !== undefined) return [`\`${run.tool}\` ran with other arguments than were approved: ${ran}`];
    return run.effects.flatMap(({ effect }) => {
      const done = differing(approved, effect.details);
      return done === undefined ? [] : [`\`${run.tool}\` did something else than was approved: ${done}`];
    });
  });
}

/** The first field that both have with different values, in words. */
function differing(approved: unknown, given: unknown): string | undefined {
  if (typeof approved !== "object" || approved === null || typeof given !== "object" || given === null)
    return undefined;
  const own = given as Readonly<Record<string, unknown>>;
  for (const [name, value] of Object.entries(approved)) {
    if (!Object.hasOwn(own, name) || JSON.stringify(own[name]) === JSON.stringify(value)) continue;
    return `${name} was ${JSON.stringify(value)} and became ${JSON.stringify(own[name])}`;
  }
  return undefined;
}

function decisionFaults({ requests }: SimulationLog): string[] {
  return [...requests.values()].flatMap(({ tool, accepted }) =>
    new Set(accepted).size > 1 ? [`a request of \`${tool}\` was decided twice: ${accepted.join(" and ")}`] : [],
  );
}

/** A turn fails only if the program has failures of the provider, or if no generated answer may fit the agent's output schema. */
function endFaults({ results, program, definition }: PlayedSimulation<unknown>): string[] {
  const isCut = failuresIn(program) > 0 || definition.output !== null;
  return (results ?? []).flatMap(({ status, error }, index) =>
    status === "failed" && !isCut
      ? [`turn ${index + 1} failed: ${error?.source ?? error?.code}: ${error?.message}`]
      : [],
  );
}

function failuresIn({ turns, subagents }: SimulatedProgram): number {
  const answers = [...turns.flatMap((turn) => turn.answers), ...Object.values(subagents).flat()];
  return answers.reduce((sum, { failures = 0 }) => sum + failures, 0);
}

function unfinished({ tree, log }: PlayedSimulation<unknown>): string[] {
  const running = log.runs
    .filter(({ end, isKilled }) => end === undefined && !isKilled)
    .map(({ tool }) => `\`${tool}\``);
  const open = tree.agents.flatMap(({ record }) => (record.openTurnId === null ? [] : [record.openTurnId]));
  const which = running.length > 0 ? `; still running: ${[...new Set(running)].join(", ")}` : "";
  return [
    `the program never came to an end: ${open.length > 0 ? `turn ${open.join(", ")} is open` : "nothing is open"}${which}`,
  ];
}

function keyOf({ name, details }: SimulatedEffect): string {
  return JSON.stringify([name, details]);
}

function wordsOf({ name, details }: SimulatedEffect): string {
  return details === null ? name : `${name} ${JSON.stringify(details)}`;
}

/** The first difference between two plays of one program; empty if they are equal. */
export function nondeterminism(one: SimulationLog, other: SimulationLog): string[] {
  const before = new Map(one.prompts.map((prompt) => [prompt.place, prompt]));
  const differing = other.prompts.find((prompt) => !isSame(before.get(prompt.place), prompt));
  if (!differing) return [];
  const { agentName, place, lines } = differing;
  const diff = lineDiff(before.get(place)?.lines ?? [], lines, (first, second) => first === second);
  return [
    `the agent is not deterministic: the same program was played twice, and in step ${place} the prompt of "${agentName}" differed. ` +
      "A tool, a hook or the instructions use the time, random values, or state outside of the world:\n" +
      diff,
  ];
}

function isSame(one: AskedPrompt | undefined, other: AskedPrompt): boolean {
  return JSON.stringify(one?.lines) === JSON.stringify(other.lines);
}
