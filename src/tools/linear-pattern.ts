/** A regular expression whose test takes time linear in pattern times text. */
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
 * All alternatives are followed side by side (Thompson's construction), so nothing backtracks. A lookahead starts another run,
 * whose steps count against the same limit. Throws `UnsupportedPattern`.
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
  /** The state at which `node` begins when `next` comes after it. */
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

  /** Follows states that need no character; true when the end of the pattern is reached. */
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

/** A regular expression as a tree, without captures, which a test does not need. */
type PatternNode =
  | { readonly kind: "character"; readonly matches: (codePoint: number) => boolean }
  | { readonly kind: "sequence" | "choice"; readonly nodes: readonly PatternNode[] }
  | { readonly kind: "repeat"; readonly node: PatternNode; readonly min: number; readonly max: number }
  | { readonly kind: "boundary"; readonly holds: (text: string, at: number) => boolean }
  | { readonly kind: "lookahead"; readonly node: PatternNode; readonly negated: boolean };

/** The pattern is not a regular expression, or cannot be checked in linear time. */
export class UnsupportedPattern extends Error {}

export const maxPatternLength = 5_000;
const maxGroupDepth = 100;
const maxRepeat = 1_000;

const atom =
  /\\(?:[pP]\{[^}]*\}|u\{[0-9a-fA-F]+\}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[^])|\[(?:\\[^]|[^\]\\])*\]|[^]/uy;
const quantifier = /(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/uy;
const groupStart = /\((?:\?(?::|=|!|<[^>]+>|[ims]+:))?/uy;
const inlineFlags = /^\(\?([ims]+)\)/;

/**
 * Parses JavaScript's regular expressions without back references and lookbehind: as with the `u` flag, or without it where the
 * pattern is invalid with it. Characters are code points either way. `(?i)`, `(?m)` and `(?s)` are accepted at the beginning, as
 * in other languages. Throws `UnsupportedPattern`.
 */
function parsePattern(given: string): PatternNode {
  if (given.length > maxPatternLength) {
    throw new UnsupportedPattern(`it is longer than ${maxPatternLength} characters`);
  }
  const flags = inlineFlags.exec(given)?.[1] ?? "";
  // Python's named groups.
  const source = given.replace(inlineFlags, "").replaceAll("(?P<", "(?<");
  checkSyntax(source);
  return parseChoice({ source, flags, at: 0 }, 0);
}

/** The engine's own parser checks the syntax, so that only well-formed patterns are parsed below. */
function checkSyntax(source: string): void {
  const fault = faultOf(source, "u");
  if (fault === undefined) return;
  if (faultOf(source, "") !== undefined) throw new UnsupportedPattern(fault);
  // Without the flag such an escape would mean the letter itself, which is surely a mistake.
  for (const [escape] of source.matchAll(/\\[^]/g)) {
    if (/[A-Za-z]/.test(escape) && !/[bBcdDfknrsStuvwWx]/.test(escape)) {
      throw new UnsupportedPattern(`${escape} means nothing here`);
    }
  }
}

function faultOf(source: string, flags: string): string | undefined {
  try {
    RegExp(source, flags);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : "it is not a regular expression";
  }
}

interface Cursor {
  readonly source: string;
  /** Those of `i`, `m` and `s` that apply here. */
  flags: string;
  at: number;
}

function parseChoice(cursor: Cursor, depth: number): PatternNode {
  if (depth > maxGroupDepth) throw new UnsupportedPattern(`it nests more than ${maxGroupDepth} groups`);
  const branches: PatternNode[] = [];
  for (;;) {
    const nodes: PatternNode[] = [];
    while (cursor.at < cursor.source.length && !/[|)]/.test(cursor.source[cursor.at] ?? "")) {
      nodes.push(parseRepeated(cursor, depth));
    }
    branches.push(nodes.length === 1 && nodes[0] !== undefined ? nodes[0] : { kind: "sequence", nodes });
    if (cursor.source[cursor.at] !== "|") break;
    cursor.at += 1;
  }
  return branches.length === 1 && branches[0] !== undefined ? branches[0] : { kind: "choice", nodes: branches };
}

function parseRepeated(cursor: Cursor, depth: number): PatternNode {
  const node =
    cursor.source[cursor.at] === "("
      ? parseGroup(cursor, depth)
      : parseAtom(take(cursor, atom)?.[0] ?? "", cursor.flags);
  const found = take(cursor, quantifier);
  if (found === undefined) return node;
  const [, sign, least, comma, most] = found;
  if (sign !== undefined) {
    return { kind: "repeat", node, min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : Number.POSITIVE_INFINITY };
  }
  const min = Number(least);
  const max = comma === undefined ? min : most === "" || most === undefined ? Number.POSITIVE_INFINITY : Number(most);
  if (min > maxRepeat || (Number.isFinite(max) && max > maxRepeat)) {
    throw new UnsupportedPattern(
      `it repeats something more than ${maxRepeat} times: use minLength and maxLength instead`,
    );
  }
  return { kind: "repeat", node, min, max };
}

function parseGroup(cursor: Cursor, depth: number): PatternNode {
  if (/^\(\?<[=!]/.test(cursor.source.slice(cursor.at, cursor.at + 4))) {
    throw new UnsupportedPattern("it looks behind, which cannot be checked in linear time");
  }
  const start = take(cursor, groupStart)?.[0] ?? "(";
  if (start === "(" && cursor.source[cursor.at] === "?") {
    throw new UnsupportedPattern("it takes flags away inside a group, which is not supported");
  }
  const outer = cursor.flags;
  cursor.flags += /^\(\?([ims]+):$/.exec(start)?.[1] ?? "";
  const node = parseChoice(cursor, depth + 1);
  cursor.flags = outer;
  cursor.at += 1;
  if (start === "(?=" || start === "(?!") return { kind: "lookahead", node, negated: start === "(?!" };
  return node;
}

function parseAtom(text: string, flags: string): PatternNode {
  const isLine = flags.includes("m");
  if (text === "^")
    return { kind: "boundary", holds: (subject, at) => at === 0 || (isLine && endsLine(subject, at - 1)) };
  if (text === "$") {
    return { kind: "boundary", holds: (subject, at) => at === subject.length || (isLine && endsLine(subject, at)) };
  }
  if (text === "\\b") return { kind: "boundary", holds: isWordBoundary };
  if (text === "\\B") return { kind: "boundary", holds: (subject, at) => !isWordBoundary(subject, at) };
  if (/^\\(?:[1-9]|k)/.test(text)) {
    throw new UnsupportedPattern("it refers back to a group, which cannot be checked in linear time");
  }
  return { kind: "character", matches: characterTest(text, flags) };
}

/** The engine tests one character against one atom: that cannot backtrack. Results for ASCII are cached. */
function characterTest(text: string, flags: string): (codePoint: number) => boolean {
  const expression = expressionOf(text, flags);
  const known = new Int8Array(128).fill(-1);
  return (codePoint) => {
    if (codePoint >= 128) return expression.test(String.fromCodePoint(codePoint));
    if (known[codePoint] === -1) known[codePoint] = expression.test(String.fromCodePoint(codePoint)) ? 1 : 0;
    return known[codePoint] === 1;
  };
}

/** An atom that is valid only without the `u` flag is tested without it; then a surrogate pair is two characters, and either may match. */
function expressionOf(text: string, flags: string): RegExp {
  const kept = [...new Set(flags.replaceAll("m", ""))].join("");
  if (faultOf(text, "u") === undefined) return new RegExp(`^(?:${text})$`, `${kept}u`);
  return new RegExp(`^(?:${text}){1,2}$`, kept);
}

function endsLine(text: string, at: number): boolean {
  return /[\n\r\u2028\u2029]/.test(text[at] ?? "");
}

function isWordBoundary(text: string, at: number): boolean {
  return isWord(text[at - 1]) !== isWord(text[at]);
}

function isWord(character: string | undefined): boolean {
  return character !== undefined && /\w/.test(character);
}

function take(cursor: Cursor, expression: RegExp): RegExpExecArray | undefined {
  expression.lastIndex = cursor.at;
  const found = expression.exec(cursor.source);
  if (found === null) return undefined;
  cursor.at = expression.lastIndex;
  return found;
}

/** Thrown when a check would take too long; a model may read the message. */
export class TooManySteps extends Error {
  constructor() {
    super("checking it takes too many steps: send fewer or shorter values");
  }
}

/**
 * Counts the steps of one synchronous check, so that no schema and no value can block the event loop.
 * One step costs 10 to 35 nanoseconds of the processor, and up to twice that at the first checks, while the engine
 * compiles: the default is at most 25 milliseconds, and 50 at first. More expensive work spends more steps.
 */
export interface StepLimit {
  /** Starts a new check. */
  reset(steps?: number): void;
  /** Throws `TooManySteps` when none are left. */
  spend(steps: number): void;
  /** Steps since the check was started. */
  spent(): number;
}

export const defaultSteps = 650_000;

export function createStepLimit(): StepLimit {
  let allowed = 0;
  let left = 0;
  return {
    reset(steps = defaultSteps) {
      allowed = steps;
      left = steps;
    },
    spent: () => allowed - left,
    spend(steps) {
      left -= steps;
      if (left < 0) throw new TooManySteps();
    },
  };
}
