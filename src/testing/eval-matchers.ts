import type { MatcherState } from "vitest";
import {
  anyRule,
  describeValue,
  nameRule,
  oneOfRule,
  type OptionsSchema,
  optionsOf,
  reading,
  ruleOf,
  wholeNumberRule,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type StopReason, stopReasons } from "../state/index.ts";
import { callText, caseLines, dollars } from "./case-lines.ts";
import { judge, type JudgeOptions } from "./judge.ts";
import type { CaseResult, CaseToolCall } from "./run-case.ts";

/** A call that a case is expected to make: the tool's name, or the name and arguments. */
export type ExpectedToolCall = string | { readonly name: string; readonly args?: unknown };

/** Options of `toHaveCalledTools()`. */
export interface ToolCallsOptions {
  /**
   * `strict`: these calls and no others, in this order. `unordered`: these calls and no others. `superset`: at least these calls. `subset`: no
   * other calls than these. Each expected call stands for one call. Default `strict`.
   */
  readonly mode?: "strict" | "unordered" | "subset" | "superset" | undefined;
  /** `partial`: arguments may have further fields, as with `toMatchObject()`. `equal`: they may not. Default `partial`. */
  readonly args?: "partial" | "equal" | undefined;
  /** The definition whose calls are compared. Default: that of the root agent. */
  readonly agent?: string | undefined;
}

/** Limits of `toTakeAtMost()`; at least one. */
export interface AtMost {
  /** Steps of the root agent. */
  readonly steps?: number | undefined;
  /** Tokens of the whole tree, input and output together. */
  readonly tokens?: number | undefined;
  /** Milliseconds. */
  readonly ms?: number | undefined;
}

/** Matchers for the result of `runCase()`. */
export interface EvalMatchers<Returns = void> {
  /** Which tools the agent called. */
  toHaveCalledTools(expected: readonly ExpectedToolCall[], options?: ToolCallsOptions): Returns;
  /** What the run cost, with its subagents, in dollars. It fails if a price is unknown. */
  toCostAtMost(dollars: number): Returns;
  /** How many steps, tokens and milliseconds the run took. */
  toTakeAtMost(limits: AtMost): Returns;
  /** Why the turn ended. */
  toEndWith(stopReason: StopReason): Returns;
  /** An object: fields of `output`, as with `toMatchObject()`. A text: part of `text`. A regular expression: matches `text`. */
  toMatchOutput(expected: object | string | RegExp): Returns;
  /** Has a model judge the run by a text or by a list of criteria. It fails if the judge gives no verdict, with `not` too. */
  toSatisfyJudge(rubric: string | readonly string[], options: JudgeOptions): Promise<void>;
}

const atLeastZero = ruleOf("a number of at least 0", (value) => typeof value === "number" && value >= 0);

const toolCallsOptions: OptionsSchema<ToolCallsOptions> = {
  rules: {
    mode: oneOfRule("strict", "unordered", "subset", "superset"),
    args: oneOfRule("partial", "equal"),
    agent: nameRule,
  },
  instead: { order: "mode", arguments: "args" },
};

const expectedCall: OptionsSchema<Exclude<ExpectedToolCall, string>> = {
  rules: { name: nameRule, args: anyRule },
  needed: ["name"],
  instead: { arguments: "args", input: "args", tool: "name" },
};

const atMostOptions: OptionsSchema<AtMost> = {
  rules: { steps: wholeNumberRule(0), tokens: wholeNumberRule(0), ms: atLeastZero },
  instead: { durationMs: "ms", time: "ms", cost: "toCostAtMost()" },
};

interface Matched {
  readonly pass: boolean;
  readonly message: () => string;
}

/** The matchers as functions for `expect.extend()`. */
export const evalMatchers = {
  toHaveCalledTools(
    this: MatcherState,
    received: unknown,
    expected: readonly ExpectedToolCall[],
    given?: ToolCallsOptions,
  ): Matched {
    const result = caseOf(received, "toHaveCalledTools");
    const wanted = wantedCalls(expected);
    const options = optionsOf<ToolCallsOptions>(given, "toHaveCalledTools()", toolCallsOptions);
    const { mode = "strict", args = "partial", agent = result.agentName } = options;
    const calls = result.toolCalls.filter(({ agentName }) => agentName === agent);
    const testers =
      args === "partial" ? [this.utils.iterableEquality, this.utils.subsetEquality] : [this.utils.iterableEquality];
    const isEqual = (call: CaseToolCall, { name, args: own }: WantedCall): boolean =>
      call.name === name && (own === undefined || this.equals(call.arguments, own, testers));
    const fault = callsFault(calls, wanted, { mode, isEqual, result });
    const shown = wanted.map(wantedText).join(", ") || "none";
    return verdict(result, fault === undefined, {
      fails: `expected the tool calls (${mode}${agent === result.agentName ? "" : `, of "${agent}"`}): ${shown}\n${fault ?? ""}`,
      not: `expected other tool calls than (${mode}): ${shown}`,
    });
  },

  toCostAtMost(this: MatcherState, received: unknown, most: number): Matched {
    const result = caseOf(received, "toCostAtMost");
    atLeastZero(most, "toCostAtMost(): its dollars");
    const { cost } = result.spent.tree;
    if (cost === null) {
      const models = Object.entries(result.spent.byModel).filter(([, spent]) => spent.cost === null);
      const names = models.map(([name]) => `"${name}"`).join(", ");
      throw new InvalidInputError(
        `toCostAtMost(): the cost is unknown, because there is no price for the model ${names}; give prices to runCase()`,
      );
    }
    return verdict(result, cost <= most, {
      fails: `expected a cost of at most ${dollars(most)}, and it was ${dollars(cost)}`,
      not: `expected a cost of more than ${dollars(most)}, and it was ${dollars(cost)}`,
    });
  },

  toTakeAtMost(this: MatcherState, received: unknown, given: AtMost): Matched {
    const result = caseOf(received, "toTakeAtMost");
    const limits = optionsOf<AtMost>(given, "toTakeAtMost()", atMostOptions);
    const { inputTokens, outputTokens } = result.spent.tree;
    const used = { steps: result.steps, tokens: inputTokens + outputTokens, ms: Math.round(result.durationMs) };
    const set = (["steps", "tokens", "ms"] as const).flatMap((name) => {
      const most = limits[name];
      return most === undefined ? [] : [{ name, most, used: used[name] }];
    });
    if (set.length === 0) throw new InvalidInputError("toTakeAtMost() needs at least one of steps, tokens and ms");
    const over = set.filter((one) => one.used > one.most);
    const texts = (list: typeof set): string =>
      list.map((one) => `${one.used} of at most ${one.most} ${one.name}`).join(", ");
    return verdict(result, over.length === 0, {
      fails: `the run took more than expected: ${texts(over)}`,
      not: `expected the run to take more, and it took ${texts(set)}`,
    });
  },

  toEndWith(this: MatcherState, received: unknown, reason: StopReason): Matched {
    const result = caseOf(received, "toEndWith");
    oneOfRule(...stopReasons)(reason, "toEndWith(): the stop reason");
    return verdict(result, result.stopReason === reason, {
      fails: `expected the turn to end with "${reason}", and it ended with "${result.stopReason}"`,
      not: `expected the turn not to end with "${reason}"`,
    });
  },

  toMatchOutput(this: MatcherState, received: unknown, expected: object | string | RegExp): Matched {
    const result = caseOf(received, "toMatchOutput");
    if (typeof expected === "string" || expected instanceof RegExp) {
      const isFound =
        typeof expected === "string"
          ? result.text.includes(expected)
          : new RegExp(expected, expected.flags.replace("g", "")).test(result.text);
      const how =
        typeof expected === "string" ? `to contain ${JSON.stringify(expected)}` : `to match ${String(expected)}`;
      return verdict(result, isFound, {
        fails: `expected the text ${how}`,
        not: `expected the text not ${how}`,
      });
    }
    ruleOf("an object, a text or a regular expression", (value) => typeof value === "object" && value !== null)(
      expected,
      "toMatchOutput(): the expected output",
    );
    const { output } = result;
    const isEqual =
      output !== undefined && this.equals(output, expected, [this.utils.iterableEquality, this.utils.subsetEquality]);
    const why =
      output === undefined
        ? "the run has no output: the turn did not complete, or its definition has no output schema"
        : (this.utils.diff(expected, output) ?? "they differ");
    return verdict(result, isEqual, {
      fails: `expected another output\n${why}`,
      not: `expected another output than ${this.utils.stringify(expected)}`,
    });
  },

  async toSatisfyJudge(
    this: MatcherState,
    received: unknown,
    rubric: string | readonly string[],
    options: JudgeOptions,
  ): Promise<Matched> {
    const result = caseOf(received, "toSatisfyJudge");
    const { pass, score, threshold, criteria } = await judge(result, rubric, options);
    const lines = criteria.map((one) => `  ${one.score.toFixed(2)} ${one.criterion}: ${one.reason}`);
    const scored = `the judge gave ${score.toFixed(2)}, with a threshold of ${threshold}`;
    return verdict(result, pass, {
      fails: [scored, ...lines].join("\n"),
      not: [`expected the judge to refuse the run, and ${scored}`, ...lines].join("\n"),
    });
  },
};

interface Words {
  /** Shown if the matcher fails. */
  readonly fails: string;
  /** Shown if it matches and was negated. */
  readonly not: string;
}

function verdict(result: CaseResult, pass: boolean, { fails, not }: Words): Matched {
  return { pass, message: () => [pass ? not : fails, ...caseLines(result)].join("\n") };
}

/** Throws `InvalidInputError` for another value than the result of a case. */
function caseOf(value: unknown, matcher: string): CaseResult {
  const fields = ["toolCalls", "spent", "stopReason", "durationMs", "tree"];
  const isCase = reading(
    `${matcher}(): its value`,
    () => typeof value === "object" && value !== null && fields.every((name) => name in value),
  );
  if (isCase) return value as CaseResult;
  const hint = value instanceof Promise ? "; await it first" : "";
  throw new InvalidInputError(
    `${matcher}() needs the result of runCase(), not ${value instanceof Promise ? "a promise" : describeValue(value)}${hint}`,
  );
}

interface WantedCall {
  readonly name: string;
  readonly args?: unknown;
}

function wantedCalls(expected: unknown): WantedCall[] {
  if (!Array.isArray(expected)) {
    throw new InvalidInputError(
      `toHaveCalledTools() needs a list of names of tools, or of { name, args }, not ${describeValue(expected)}`,
    );
  }
  return expected.map((one: unknown, index) => {
    const where = `toHaveCalledTools(): expected[${index}]`;
    if (typeof one === "string") return { name: nameRule(one, where) as string };
    if (typeof one === "object" && one !== null)
      return optionsOf<WantedCall>(one, where, expectedCall as OptionsSchema<WantedCall>);
    throw new InvalidInputError(`${where} is ${describeValue(one)}; expected the name of a tool, or { name, args }`);
  });
}

function wantedText({ name, args }: WantedCall): string {
  return args === undefined ? name : `${name}(${JSON.stringify(args)})`;
}

interface Comparing {
  readonly mode: NonNullable<ToolCallsOptions["mode"]>;
  readonly isEqual: (call: CaseToolCall, wanted: WantedCall) => boolean;
  readonly result: CaseResult;
}

/** Why the calls are not the expected ones; `undefined` if they are. */
function callsFault(
  calls: readonly CaseToolCall[],
  wanted: readonly WantedCall[],
  { mode, isEqual, result }: Comparing,
): string | undefined {
  if (mode === "strict") {
    const length = Math.max(calls.length, wanted.length);
    for (let index = 0; index < length; index += 1) {
      const [call, want] = [calls[index], wanted[index]];
      if (call && want && isEqual(call, want)) continue;
      const found = call ? callText(call, result) : "there is none";
      return `call ${index + 1} is expected to be ${want ? wantedText(want) : "none"}: ${found}`;
    }
    return undefined;
  }
  const pairs = pairsOf(calls, wanted, isEqual);
  const missing = wanted.filter((_, index) => !pairs.has(index));
  const paired = new Set(pairs.values());
  const others = calls.filter((_, index) => !paired.has(index));
  const faults = [
    ...(mode !== "subset" && missing.length > 0 ? [`missing: ${missing.map(wantedText).join(", ")}`] : []),
    ...(mode !== "superset" && others.length > 0
      ? [`not expected: ${others.map((call) => callText(call, result)).join(", ")}`]
      : []),
  ];
  return faults.length === 0 ? undefined : faults.join("\n");
}

/**
 * As many pairs of an expected call and a call as possible, by their indexes. A call may fit several expected ones, so that a pair is given up
 * when both can be paired otherwise.
 */
function pairsOf(
  calls: readonly CaseToolCall[],
  wanted: readonly WantedCall[],
  isEqual: Comparing["isEqual"],
): ReadonlyMap<number, number> {
  const wantedOf = new Map<number, number>();
  const pair = (want: number, tried: Set<number>): boolean => {
    for (const [index, call] of calls.entries()) {
      const one = wanted[want];
      if (tried.has(index) || one === undefined || !isEqual(call, one)) continue;
      tried.add(index);
      const other = wantedOf.get(index);
      if (other !== undefined && !pair(other, tried)) continue;
      wantedOf.set(index, want);
      return true;
    }
    return false;
  };
  for (const want of wanted.keys()) pair(want, new Set());
  return new Map([...wantedOf].map(([call, want]) => [want, call]));
}
