import type { RunAgent, RunEntryOf, RunLog } from "./run-log.ts";

/** One run of a comparison. */
export interface ComparedRun {
  readonly log: RunLog;
  /** The text of a message; undefined: it is not known, and nothing is said of it. */
  readonly textOf: (messageId: string) => string | undefined;
}

/** A step as one run made it: its last attempt. */
export interface StepSide {
  /** Number of its `model.requested`, the name of its prompt. */
  readonly seq: number;
  readonly model: string;
  readonly promptHash: string;
  readonly attempts: number;
  /** `name`, or `name outcome` where the call did not succeed. */
  readonly tools: readonly string[];
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Micro-dollars; null: the call had no price. */
  readonly costMicros: number | null;
  /** Null: the text is not known. */
  readonly answer: string | null;
}

export const stepFields = ["model", "prompt", "tools", "tokens", "cost", "answer"] as const;
export type StepField = (typeof stepFields)[number];

export interface ComparedStep {
  readonly turn: number;
  readonly step: number;
  /** Null: this run did not make it. */
  readonly one: StepSide | null;
  readonly other: StepSide | null;
  /** Empty: both are the same. Of a step that one run lacks, it names nothing. */
  readonly differs: readonly StepField[];
  readonly isSame: boolean;
}

export interface ComparedAgent {
  readonly name: string;
  readonly depth: number;
  /** Null: this run has no such agent. */
  readonly one: RunAgent | null;
  readonly other: RunAgent | null;
  readonly steps: readonly ComparedStep[];
  /** Steps that differ, and 1 for an agent that one run lacks. */
  readonly differences: number;
}

/**
 * Two runs side by side: agents by their place in the tree (name, turn and step of the parent, order), their steps by turn and
 * number. Agents that differ come first, each in the order of the tree.
 */
export function compareRuns(one: ComparedRun, other: ComparedRun): ComparedAgent[] {
  const steps = { one: stepsOf(one), other: stepsOf(other) };
  const agents = pairs(one.log, other.log).map((pair): ComparedAgent => {
    const mine = pair.one ? (steps.one.get(pair.one.index) ?? new Map()) : new Map<string, StepSide>();
    const its = pair.other ? (steps.other.get(pair.other.index) ?? new Map()) : new Map<string, StepSide>();
    const compared = comparedSteps(mine, its);
    const isMissing = pair.one === null || pair.other === null;
    const differences = compared.filter(({ isSame }) => !isSame).length + (isMissing ? 1 : 0);
    const { name = "", depth = 0 } = pair.one ?? pair.other ?? {};
    return { ...pair, name, depth, steps: compared, differences };
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

/** From the roots down, each agent before its children. */
function pairs(one: RunLog, other: RunLog): Pair[] {
  const all: Pair[] = [];
  const visit = (pair: Pair): void => {
    all.push(pair);
    for (const child of matched(childrenOf(pair.one, one), childrenOf(pair.other, other))) visit(child);
  };
  visit({ one: one.agents[0] ?? null, other: other.agents[0] ?? null });
  return all;
}

/** First those of one name and step in their order, then what is left by name alone. */
function matched(ones: readonly RunAgent[], others: readonly RunAgent[]): Pair[] {
  const partners = new Map<RunAgent, RunAgent>();
  for (const keyOf of [placeOf, ({ name }: RunAgent) => name]) {
    const taken = new Set(partners.values());
    const free = new Map<string, RunAgent[]>();
    for (const agent of others) {
      if (!taken.has(agent)) free.set(keyOf(agent), [...(free.get(keyOf(agent)) ?? []), agent]);
    }
    for (const agent of ones) {
      const partner = partners.has(agent) ? undefined : free.get(keyOf(agent))?.shift();
      if (partner) partners.set(agent, partner);
    }
  }
  const taken = new Set(partners.values());
  return [
    ...ones.map((one) => ({ one, other: partners.get(one) ?? null })),
    ...others.filter((agent) => !taken.has(agent)).map((agent) => ({ one: null, other: agent })),
  ];
}

function placeOf({ name, parentTurnId, parentStep }: RunAgent): string {
  return `${name} ${turnNumber(parentTurnId ?? "")} ${parentStep}`;
}

function turnNumber(turnId: string): number {
  return Number(turnId.slice(turnId.lastIndexOf("#") + 1)) || 0;
}

type Making = { -readonly [Field in keyof StepSide]: StepSide[Field] } & { tools: string[] };

/** By agent, then by turn and step. */
function stepsOf({ log, textOf }: ComparedRun): ReadonlyMap<number, Map<string, StepSide>> {
  const all = new Map<number, Map<string, Making>>();
  for (const [place, entry] of log.entries.entries()) {
    const agent = log.agentOf(log.first + place);
    const steps = all.get(agent) ?? new Map<string, Making>();
    all.set(agent, steps);
    if (entry.type === "model.requested") {
      const key = keyOf(entry);
      steps.set(key, { ...begun(entry), attempts: (steps.get(key)?.attempts ?? 0) + 1 });
    } else if (entry.type === "model.responded") {
      const step = steps.get(keyOf(entry));
      const { inputTokens, outputTokens } = entry.usage;
      const answer = textOf(entry.messageId) ?? (entry.hasText ? null : "");
      if (step) Object.assign(step, { inputTokens, outputTokens, costMicros: entry.costMicros, answer });
    } else if (entry.type === "tool.settled") {
      const { name, outcome } = entry;
      steps.get(keyOf(entry))?.tools.push(outcome === "success" ? name : `${name} ${outcome}`);
    }
  }
  return all;
}

function begun({ seq, model, promptHash }: RunEntryOf<"model.requested">): Making {
  const amounts = { inputTokens: 0, outputTokens: 0, costMicros: 0 };
  return { seq, model, promptHash, attempts: 0, tools: [], ...amounts, answer: null };
}

function keyOf({ turnId, step }: { readonly turnId: string; readonly step: number }): string {
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
      hasCalled ||= (one?.tools.length ?? 0) + (other?.tools.length ?? 0) > 0;
      return { turn, step, one, other, differs, isSame: one !== null && other !== null && differs.length === 0 };
    });
}

/** The hash of a prompt covers the provider's ids of the calls in it: behind a call, another hash says nothing. */
function fieldsThatDiffer(one: StepSide, other: StepSide, hasCalled: boolean): StepField[] {
  const differs: Readonly<Record<StepField, boolean>> = {
    model: one.model !== other.model,
    prompt: !hasCalled && one.promptHash !== other.promptHash,
    // Calls of one round settle in any order.
    tools: one.tools.toSorted().join("\n") !== other.tools.toSorted().join("\n"),
    tokens: one.inputTokens !== other.inputTokens || one.outputTokens !== other.outputTokens,
    cost: one.costMicros !== other.costMicros,
    answer: one.answer !== null && other.answer !== null && one.answer !== other.answer,
  };
  return stepFields.filter((field) => differs[field]);
}
