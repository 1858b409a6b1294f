import { parsePattern, type PatternNode, UnsupportedPattern } from "./pattern-syntax.ts";
import type { StepLimit } from "./step-limit.ts";

/** A regular expression that answers in time linear in pattern times text, whatever they are (guarantee S11). */
export interface LinearPattern {
  /** Whether it matches anywhere in the text, as `RegExp.test` would say. Throws `TooManySteps` past the limit. */
  test(text: string): boolean;
}

type State =
  | { readonly kind: "character"; readonly matches: (codePoint: number) => boolean; readonly next: number }
  | { readonly kind: "boundary"; readonly holds: (text: string, at: number) => boolean; readonly next: number }
  | { readonly kind: "split"; readonly targets: number[] }
  | { readonly kind: "lookahead"; readonly program: Program; readonly negated: boolean; readonly next: number }
  | { readonly kind: "match" };

interface Program {
  readonly states: readonly State[];
  readonly start: number;
}

const maxStates = 5_000;

/**
 * All alternatives are followed side by side (Thompson's construction), so nothing backtracks. Lookaheads start such
 * a run of their own; their steps count against the same limit. Throws `UnsupportedPattern`.
 */
export function createLinearPattern(source: string, limit: StepLimit): LinearPattern {
  const program = compile(parsePattern(source), { states: 0 });
  return { test: (text) => run(program, text, 0, false, limit) };
}

function compile(root: PatternNode, size: { states: number }): Program {
  const states: State[] = [];
  function push(state: State): number {
    size.states += 1;
    if (size.states > maxStates) throw new UnsupportedPattern("it is too large once its repetitions are written out");
    return states.push(state) - 1;
  }
  /** Gives the state at which `node` begins when `next` comes after it. */
  function build(node: PatternNode, next: number): number {
    switch (node.kind) {
      case "character":
        return push({ kind: "character", matches: node.matches, next });
      case "boundary":
        return push({ kind: "boundary", holds: node.holds, next });
      case "lookahead":
        return push({ kind: "lookahead", program: compile(node.node, size), negated: node.negated, next });
      case "choice":
        return push({ kind: "split", targets: node.nodes.map((branch) => build(branch, next)) });
      case "sequence":
        // An empty sequence has a state too: repeating nothing must not be free.
        if (node.nodes.length === 0) return push({ kind: "split", targets: [next] });
        return node.nodes.reduceRight((after, part) => build(part, after), next);
      default:
        return buildRepeat(node, next);
    }
  }
  function buildRepeat({ node, min, max }: PatternNode & { kind: "repeat" }, next: number): number {
    const targets = [next];
    let entry = push({ kind: "split", targets });
    if (max === Number.POSITIVE_INFINITY) targets.push(build(node, entry));
    else
      for (let extra = min; extra < max; extra += 1)
        entry = push({ kind: "split", targets: [build(node, entry), next] });
    for (let copy = 0; copy < min; copy += 1) entry = build(node, entry);
    return entry;
  }
  const match = push({ kind: "match" });
  return { start: build(root, match), states };
}

function run(program: Program, text: string, from: number, anchored: boolean, limit: StepLimit): boolean {
  limit.spend(1 + (program.states.length >> 3));
  const seenAt = new Int32Array(program.states.length).fill(-1);
  let current: number[] = [];
  let at = from;

  /** Follows what needs no character; true when the end of the pattern is reached. */
  function reach(entry: number, into: number[]): boolean {
    const open = [entry];
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      if (seenAt[index] === at) continue;
      seenAt[index] = at;
      const state = program.states[index];
      if (state === undefined) continue;
      if (state.kind === "match") return true;
      limit.spend(state.kind === "split" ? state.targets.length : 1);
      if (state.kind === "character") into.push(index);
      else if (state.kind === "split") open.push(...state.targets);
      else if (state.kind === "boundary") {
        if (state.holds(text, at)) open.push(state.next);
      } else if (run(state.program, text, at, true, limit) !== state.negated) open.push(state.next);
    }
    return false;
  }

  for (;;) {
    if ((!anchored || at === from) && reach(program.start, current)) return true;
    if (at >= text.length || (anchored && current.length === 0)) return false;
    const codePoint = text.codePointAt(at) ?? 0;
    at += codePoint > 0xff_ff ? 2 : 1;
    limit.spend(current.length + 1);
    const following: number[] = [];
    for (const index of current) {
      const state = program.states[index];
      if (state?.kind === "character" && state.matches(codePoint) && reach(state.next, following)) return true;
    }
    current = following;
  }
}
