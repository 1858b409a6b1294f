import type { ComparedText, StepContents } from "../feed/wire.ts";
import type { RunAgent, RunEntryOf, RunLog } from "./run-log.ts";

/** One run of a comparison. */
export interface ComparedRun {
  readonly log: RunLog;
  /** The contents of a step by the number of its `model.requested`; `undefined` if they are not known. */
  readonly contentsOf: (agentId: string, seq: number) => StepContents | undefined;
}

/** A tool call of one run. */
export interface CallSide {
  readonly callId: string;
  /** `name`, or `name outcome` if the call did not succeed. */
  readonly name: string;
  /** `null` if they are not known. */
  readonly arguments: ComparedText | null;
  readonly result: ComparedText | null;
}

/** The last attempt of a step in one run. */
export interface StepSide {
  /** Number of its `model.requested`; identifies its prompt. */
  readonly seq: number;
  readonly model: string;
  readonly promptHash: string;
  readonly attempts: number;
  readonly calls: readonly CallSide[];
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Micro-dollars; `null` if the call had no price. */
  readonly costMicros: number | null;
  /** `undefined` if its contents are not known. */
  readonly contents: StepContents | undefined;
}

export const stepFields = ["model", "prompt", "tools", "arguments", "results", "tokens", "cost", "answer"] as const;
export type StepField = (typeof stepFields)[number];

export interface ComparedStep {
  readonly turn: number;
  readonly step: number;
  /** The step in the first run; `null` if that run does not have it. */
  readonly one: StepSide | null;
  readonly other: StepSide | null;
  /** The differing fields. Empty if both steps are the same or one run lacks the step. */
  readonly differs: readonly StepField[];
  readonly isSame: boolean;
  /** Whether the contents of both are known. If not, only figures and names are compared. */
  readonly isRead: boolean;
}

/** How the turns of an agent ended, as `outcome stop_reason`. */
interface Ends {
  readonly one: string;
  readonly other: string;
}

export interface ComparedAgent {
  readonly name: string;
  readonly depth: number;
  /** The agent in the first run; `null` if that run lacks it. */
  readonly one: RunAgent | null;
  readonly other: RunAgent | null;
  readonly steps: readonly ComparedStep[];
  /** `null` if the turns ended in the same way. */
  readonly ends: Ends | null;
  /** Number of differing steps, plus 1 if the turns ended differently, plus 1 if one run lacks the agent. */
  readonly differences: number;
}

/**
 * Two runs side by side. Agents are matched by position in the tree (name, turn and step of the parent, order), steps by
 * turn and number. Differing agents come first, in tree order; the others follow in tree order.
 */
export function compareRuns(one: ComparedRun, other: ComparedRun): ComparedAgent[] {
  const steps = { one: stepsOf(one), other: stepsOf(other) };
  const ends = { one: endsOf(one.log), other: endsOf(other.log) };
  const agents = pairs(one.log, other.log).map((pair): ComparedAgent => {
    const mine = pair.one ? (steps.one.get(pair.one.index) ?? new Map()) : new Map<string, StepSide>();
    const its = pair.other ? (steps.other.get(pair.other.index) ?? new Map()) : new Map<string, StepSide>();
    const compared = comparedSteps(mine, its);
    const isMissing = pair.one === null || pair.other === null;
    const [ended, itEnded] = [ends.one.get(pair.one?.index ?? -1) ?? "", ends.other.get(pair.other?.index ?? -1) ?? ""];
    const apart = isMissing || ended === itEnded ? null : { one: ended, other: itEnded };
    const different = compared.filter(({ isSame }) => !isSame).length;
    const differences = different + (isMissing ? 1 : 0) + (apart ? 1 : 0);
    const { name = "", depth = 0 } = pair.one ?? pair.other ?? {};
    return { ...pair, name, depth, steps: compared, ends: apart, differences };
  });
  return [...agents.filter((agent) => agent.differences > 0), ...agents.filter((agent) => agent.differences === 0)];
}

interface Pair {
  readonly one: RunAgent | null;
  readonly other: RunAgent | null;
}

function childrenOf(agent: RunAgent | null, log: RunLog): RunAgent[] {
  return (agent?.children ?? []).flatMap((index) => log.agents[index] ?? []);
}

/** All pairs of agents; parents come before their children. */
function pairs(one: RunLog, other: RunLog): Pair[] {
  const all: Pair[] = [];
  const visit = (pair: Pair): void => {
    all.push(pair);
    for (const child of matched(childrenOf(pair.one, one), childrenOf(pair.other, other))) visit(child);
  };
  visit({ one: one.agents[0] ?? null, other: other.agents[0] ?? null });
  return all;
}

/** Matches agents of the same name and step in order, then the rest by name only. */
function matched(ones: readonly RunAgent[], others: readonly RunAgent[]): Pair[] {
  const partners = new Map<RunAgent, RunAgent>();
  for (const stepKey of [spawnKey, ({ name }: RunAgent) => name]) {
    const taken = new Set(partners.values());
    const free = new Map<string, RunAgent[]>();
    for (const agent of others) {
      if (!taken.has(agent)) free.set(stepKey(agent), [...(free.get(stepKey(agent)) ?? []), agent]);
    }
    for (const agent of ones) {
      const partner = partners.has(agent) ? undefined : free.get(stepKey(agent))?.shift();
      if (partner) partners.set(agent, partner);
    }
  }
  const taken = new Set(partners.values());
  return [
    ...ones.map((one) => ({ one, other: partners.get(one) ?? null })),
    ...others.filter((agent) => !taken.has(agent)).map((agent) => ({ one: null, other: agent })),
  ];
}

function spawnKey({ name, parentTurnId, parentStep }: RunAgent): string {
  return `${name} ${turnNumber(parentTurnId ?? "")} ${parentStep}`;
}

function turnNumber(turnId: string): number {
  return Number(turnId.slice(turnId.lastIndexOf("#") + 1)) || 0;
}

/** How turns ended, by agent. Open turns are not included. */
function endsOf(log: RunLog): ReadonlyMap<number, string> {
  const ends = new Map<number, string>();
  for (const [place, entry] of log.entries.entries()) {
    if (entry.type !== "turn.ended") continue;
    const agent = log.agentOf(log.first + place);
    const how = `${entry.outcome} ${entry.stopReason}`;
    ends.set(agent, ends.has(agent) ? `${ends.get(agent)}, ${how}` : how);
  }
  return ends;
}

type Making = { -readonly [Field in keyof StepSide]: StepSide[Field] } & { calls: CallSide[] };

/** Steps by agent, then by turn and step. */
function stepsOf({ log, contentsOf }: ComparedRun): ReadonlyMap<number, Map<string, StepSide>> {
  const all = new Map<number, Map<string, Making>>();
  for (const [place, entry] of log.entries.entries()) {
    const agent = log.agentOf(log.first + place);
    const steps = all.get(agent) ?? new Map<string, Making>();
    all.set(agent, steps);
    if (entry.type === "model.requested") {
      const key = stepKey(entry);
      const contents = contentsOf(log.agents[agent]?.agentId ?? "", entry.seq);
      steps.set(key, { ...begun(entry), contents, attempts: (steps.get(key)?.attempts ?? 0) + 1 });
    } else if (entry.type === "model.responded") {
      const step = steps.get(stepKey(entry));
      const { inputTokens, outputTokens } = entry.usage;
      if (step) Object.assign(step, { inputTokens, outputTokens, costMicros: entry.costMicros });
    } else if (entry.type === "tool.settled") {
      const { callId, name, outcome } = entry;
      const step = steps.get(stepKey(entry));
      const known = step?.contents?.calls.find((call) => call.callId === callId);
      const { arguments: given = null, result = null } = known ?? {};
      step?.calls.push({
        callId,
        name: outcome === "success" ? name : `${name} ${outcome}`,
        arguments: given,
        result,
      });
    }
  }
  return all;
}

function begun({ seq, model, promptHash }: RunEntryOf<"model.requested">): Making {
  const amounts = { inputTokens: 0, outputTokens: 0, costMicros: 0 };
  return { seq, model, promptHash, attempts: 0, calls: [], ...amounts, contents: undefined };
}

function stepKey({ turnId, step }: { readonly turnId: string; readonly step: number }): string {
  return `${turnNumber(turnId)} ${step}`;
}

function comparedSteps(ones: ReadonlyMap<string, StepSide>, others: ReadonlyMap<string, StepSide>): ComparedStep[] {
  const keys = [...new Set([...ones.keys(), ...others.keys()])];
  let hasCalled = false;
  return keys
    .map((key) => ({ key, numbers: key.split(" ").map(Number) as [number, number] }))
    .toSorted((a, b) => a.numbers[0] - b.numbers[0] || a.numbers[1] - b.numbers[1])
    .map(({ key, numbers: [turn, step] }) => {
      const one = ones.get(key) ?? null;
      const other = others.get(key) ?? null;
      const differs = one && other ? fieldsThatDiffer(one, other, hasCalled) : [];
      hasCalled ||= (one?.calls.length ?? 0) + (other?.calls.length ?? 0) > 0;
      const isSame = one !== null && other !== null && differs.length === 0;
      const isRead = [one, other].every((side) => side === null || isKnown(side));
      return { turn, step, one, other, differs, isSame, isRead };
    });
}

function isKnown({ contents }: StepSide): boolean {
  return contents !== undefined && contents.prompt !== null;
}

/** A prompt's hash includes the provider's call ids. After a call, only the contents can be compared. */
function fieldsThatDiffer(one: StepSide, other: StepSide, hasCalled: boolean): StepField[] {
  const [mine, its] = [one.contents, other.contents];
  const differs: Readonly<Record<StepField, boolean>> = {
    model: one.model !== other.model,
    prompt: (!hasCalled && one.promptHash !== other.promptHash) || isOther(mine?.prompt, its?.prompt),
    tools: listed(one, ({ name }) => name) !== listed(other, ({ name }) => name),
    arguments: areOther(one, other, "arguments"),
    results: areOther(one, other, "result"),
    tokens: one.inputTokens !== other.inputTokens || one.outputTokens !== other.outputTokens,
    cost: one.costMicros !== other.costMicros,
    answer: mine !== undefined && its !== undefined && mine.answer?.hash !== its.answer?.hash,
  };
  return stepFields.filter((field) => differs[field]);
}

function areOther(one: StepSide, other: StepSide, field: "arguments" | "result"): boolean {
  if (!one.contents || !other.contents) return false;
  const words = (call: CallSide): string => `${call.name} ${call[field]?.hash ?? ""}`;
  return listed(one, words) !== listed(other, words);
}

/** Whether both values are known and different. */
function isOther(one: string | null | undefined, other: string | null | undefined): boolean {
  return one != null && other != null && one !== other;
}

/** Calls of one round can settle in any order. */
function listed({ calls }: StepSide, wordsOf: (call: CallSide) => string): string {
  return calls.map(wordsOf).toSorted().join("\n");
}
