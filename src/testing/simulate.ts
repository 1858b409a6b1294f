import { type AgentDefinition, definitionRule, isDefinition } from "../agents/index.ts";
import {
  describeValue,
  functionRule,
  listRule,
  oneOfRule,
  optionsOf,
  type OptionsSchema,
  reading,
  recordRule,
  renderPath,
  textRule,
  toJson,
  wholeNumberRule,
  wordsOfThrown,
} from "../base/index.ts";
import { type Budget, budgetRule } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { TurnResult } from "../runtime/index.ts";
import type { CallOutcome, Json } from "../state/index.ts";
import type { Stores } from "../stores/index.ts";
import { createFakeClock } from "./fake-clock.ts";
import { type Catalog, catalogOf, type DrawOptions, drawProgram } from "./simulation/draw-program.ts";
import type { SimulatedEffect, SimulationLog } from "./simulation/log.ts";
import {
  type PlayedSimulation,
  type PlayOptions,
  playSimulation,
  type SimulationCase,
} from "./simulation/play-simulation.ts";
import { momentNames, programRule, type SimulatedProgram } from "./simulation/program.ts";
import { ROOT } from "./simulation/simulation-driver.ts";
import { nondeterminism, simulationFaults } from "./simulation/simulation-faults.ts";
import { kindOf, smallerThan, type SmallerRules } from "./simulation/smaller.ts";

/** A call of a tool in a simulated run. */
export interface SimulatedRunCall {
  /** Name of the tool or subagent. */
  readonly tool: string;
  /** Id of the call. */
  readonly callId: string;
  /** How it ended. */
  readonly outcome: CallOutcome;
  /** How often its code ran; 0 for subagents. */
  readonly runs: number;
}

/** A played program, for the test's own check. */
export interface SimulatedRun<World = undefined> {
  /** The world after the program. */
  readonly world: World;
  /** The program. */
  readonly program: SimulatedProgram;
  /** The results of its turns; empty if it did not come to an end. */
  readonly turns: readonly TurnResult[];
  /** All calls of the tree that have ended, in the order of their agents. */
  readonly calls: readonly SimulatedRunCall[];
  /** What the world reported, in order. */
  readonly effects: readonly SimulatedEffect[];
  /** Id of the root agent in `stores`. */
  readonly agentId: string;
  /** The stores with the journals, open until the check has returned. */
  readonly stores: Stores;
}

/** Options of `simulate()`. */
export interface SimulateOptions<World = undefined> {
  /** How many programs are drawn and played. Default 100. */
  readonly programs?: number | undefined;
  /** The seed of the first program; each further one has the next number. Default 1. */
  readonly seed?: number | undefined;
  /** Plays this program in the place of drawn ones. Default: none. */
  readonly program?: SimulatedProgram | undefined;
  /** Inputs that turns are drawn from. Default: `["Please begin."]`. */
  readonly inputs?: readonly string[] | undefined;
  /**
   * Arguments that the calls of a tool are drawn from, by the name of the tool. Default: simple values that fit its JSON Schema.
   */
  readonly arguments?: Readonly<Record<string, readonly unknown[]>> | undefined;
  /** Limits of each turn, in addition to those of the definition. Default: none. */
  readonly budget?: Budget | undefined;
  /**
   * `random`: most programs have one or two deaths. `every`: each program is also played with a death at every moment that it passes, one
   * after the other. `none`: no process dies. Default `random`.
   */
  readonly kills?: "random" | "every" | "none" | undefined;
  /** Where the agents are stored; `sqlite` is a temporary file. Default `memory`. */
  readonly on?: "memory" | "sqlite" | undefined;
  /** Checks a played program. It throws, or returns what is wrong in words. Default: no check besides the built-in ones. */
  readonly check?:
    | ((run: SimulatedRun<World>) => void | string | readonly string[] | Promise<void | string | readonly string[]>)
    | undefined;
  /** Most programs that are played to make a failing one smaller; 0 leaves it as it is. Default 300. */
  readonly maxShrinks?: number | undefined;
  /** Called after each program. Default: nothing. */
  readonly onProgress?: ((progress: { readonly done: number; readonly of: number }) => void) | undefined;
}

/** The result of `simulate()`. */
export interface SimulationReport {
  /** How many programs were played. The first one that fails is the last. */
  readonly programs: number;
  /** How many times a program was played. */
  readonly plays: number;
  /** How many turns ended. */
  readonly turns: number;
  /** How often the code of each tool ran, by its name. */
  readonly calls: Readonly<Record<string, number>>;
  /** How many effects the world reported. */
  readonly effects: number;
  /** How many requests people decided. */
  readonly decisions: number;
  /** How many processes died. */
  readonly deaths: number;
  /** What went wrong in the first failing program, in words. Empty: nothing did. */
  readonly faults: readonly string[];
  /** The seed of the failing program; `null` if none failed, or if `program` was given. */
  readonly seed: number | null;
  /** The smallest program that fails in the same way; `null` if none failed. */
  readonly program: SimulatedProgram | null;
  /** A vitest test that plays `program`; `null` if none failed. */
  readonly test: string | null;
}

const DEFAULT_PROGRAMS = 100;
const DEFAULT_SHRINKS = 300;

const simulateSchema: OptionsSchema<SimulateOptions> = {
  rules: {
    programs: wholeNumberRule(1),
    seed: wholeNumberRule(0),
    program: programRule,
    inputs: filled("a list of texts", listRule("a list of texts", textRule)),
    arguments: recordRule(
      "an object of lists of arguments by the names of tools",
      filled("a list of arguments", listRule("a list of arguments", argumentsRule)),
    ),
    budget: budgetRule,
    kills: oneOfRule("random", "every", "none"),
    on: oneOfRule("memory", "sqlite"),
    check: functionRule,
    maxShrinks: wholeNumberRule(0),
    onProgress: functionRule,
  },
  instead: {
    count: "programs",
    runs: "programs",
    numRuns: "programs",
    stores: "on",
    args: "arguments",
    input: "inputs",
  },
};

function filled(expected: string, rule: (value: unknown, where: string) => unknown) {
  return (value: unknown, where: string): unknown => {
    const list = rule(value, where);
    if (Array.isArray(list) && list.length > 0) return list;
    throw new InvalidInputError(`${where} is empty; expected ${expected}`);
  };
}

function argumentsRule(value: unknown, where: string): Json {
  const copy = toJson(value);
  if (copy.ok && typeof copy.json === "object" && copy.json !== null && !Array.isArray(copy.json)) return copy.json;
  const why = copy.ok ? `is ${describeValue(value)}` : `at ${renderPath(copy.issue.path)}: ${copy.issue.message}`;
  throw new InvalidInputError(`${where} ${why}; expected the arguments of one call, an object of plain JSON`);
}

const caseSchema: OptionsSchema<SimulationCase<never>> = {
  rules: { world: functionRule, agent: functionRule },
  needed: ["world", "agent"],
  instead: { definition: "agent", makeWorld: "world" },
};

/**
 * Plays random programs against an agent and its tools, in simulated processes that die, and checks what must hold: the model's answers are
 * drawn, people decide twice, turns are aborted, the clock is set. Nothing waits for real time, and a seed always gives the same program.
 *
 * The tools' own code runs; it should act on a stub of the outside that reports effects. With a definition alone only the runs of tools are
 * checked.
 *
 * @throws InvalidInputError for invalid options, and for a tool for which no arguments can be generated.
 */
export async function simulate<World = undefined>(
  target: AgentDefinition | SimulationCase<World>,
  given?: SimulateOptions<World>,
): Promise<SimulationReport> {
  const options = optionsOf<SimulateOptions<World>>(given, "simulate()", simulateSchema);
  return await new Simulation<World>(caseOf(target), options).run();
}

function caseOf<World>(target: unknown): SimulationCase<World> {
  if (reading("simulate(): the agent", () => isDefinition(target))) {
    const definition = target as AgentDefinition;
    return { world: () => undefined as World, agent: () => definition };
  }
  if (typeof target !== "object" || target === null) {
    throw new InvalidInputError(
      `simulate() simulates a definition made by defineAgent(), or { world, agent }, not ${describeValue(target)}`,
    );
  }
  return optionsOf<SimulationCase<World>>(target, "simulate(): the agent", caseSchema);
}

/** One call of `simulate()`. Owns its counts. */
class Simulation<World> {
  readonly #options: SimulateOptions<World>;
  readonly #play: PlayOptions<World>;
  readonly #counts = { plays: 0, turns: 0, effects: 0, decisions: 0, deaths: 0 };
  readonly #calls: Record<string, number> = {};

  constructor(target: SimulationCase<World>, options: SimulateOptions<World>) {
    this.#options = options;
    this.#play = { target, on: options.on ?? "memory", budget: options.budget };
  }

  async run(): Promise<SimulationReport> {
    const { program: given, seed: first = 1, programs = given ? 1 : DEFAULT_PROGRAMS, onProgress } = this.#options;
    const drawing = given ? undefined : await this.#drawing();
    for (let done = 0; done < programs; done += 1) {
      const seed = first + done;
      const drawn = given ?? (drawing && drawProgram(seed, drawing.catalog, drawing.options));
      const failed = drawn && (await this.#failingOf(drawn));
      if (failed) return this.#report(done + 1, await this.#shrunk(failed), given ? null : seed);
      onProgress?.({ done: done + 1, of: programs });
    }
    return this.#report(programs, undefined, null);
  }

  /** What programs are drawn from. */
  async #drawing(): Promise<{ readonly catalog: Catalog; readonly options: DrawOptions }> {
    const { inputs = ["Please begin."], arguments: given = {}, kills } = this.#options;
    const { target } = this.#play;
    const world = target.world({ effect: () => undefined, clock: createFakeClock() });
    const definition = await target.agent(world);
    definitionRule(definition, "simulate(): the value that agent() returns");
    const options = {
      definition,
      inputs,
      given: given as Readonly<Record<string, readonly Json[]>>,
      kills: kills !== "none",
    };
    return { catalog: await catalogOf(options), options };
  }

  /** The program that fails among those to play for a drawn one, with its faults. */
  async #failingOf(program: SimulatedProgram): Promise<Failing | undefined> {
    const isEvery = this.#options.kills === "every" && this.#options.program === undefined;
    const first = isEvery ? { ...program, deaths: [] } : program;
    const { faults, log } = await this.#playOnce(first);
    if (faults.length > 0) return { program: first, faults };
    const isSteady = first.deaths.length === 0 && first.acts.length === 0;
    if (isSteady) {
      const again = await this.#playOnce(first);
      const differing = nondeterminism(log, again.log);
      if (differing.length > 0) return { program: first, faults: differing };
    }
    if (!isEvery) return undefined;
    for (const at of momentNames) {
      for (let hit = 1; hit <= log.passes[at]; hit += 1) {
        const killed = { ...program, deaths: [{ at, hit }] };
        const { faults: found } = await this.#playOnce(killed);
        if (found.length > 0) return { program: killed, faults: found };
      }
    }
    return undefined;
  }

  async #playOnce(
    program: SimulatedProgram,
  ): Promise<{ readonly faults: readonly string[]; readonly log: SimulationLog }> {
    return await playSimulation(program, this.#play, async (played) => {
      this.#count(played);
      return { faults: [...simulationFaults(played), ...(await this.#checked(played))], log: played.log };
    });
  }

  async #checked(played: PlayedSimulation<World>): Promise<readonly string[]> {
    const { check } = this.#options;
    if (!check) return [];
    try {
      const found: unknown = await check(runOf(played));
      if (found === undefined) return [];
      return [found].flat().map((text) => `check: ${typeof text === "string" ? text : describeValue(text)}`);
    } catch (error) {
      return [`check: ${wordsOfThrown(error)}`];
    }
  }

  #count({ log, results = [] }: PlayedSimulation<World>): void {
    this.#counts.plays += 1;
    this.#counts.turns += results.length;
    this.#counts.effects += log.effects.length;
    this.#counts.decisions += log.requests.size;
    this.#counts.deaths += log.deaths;
    for (const { tool } of log.runs) this.#calls[tool] = (this.#calls[tool] ?? 0) + 1;
  }

  /** The smallest program that fails in the same way. */
  async #shrunk(failing: Failing): Promise<Failing> {
    const kinds = new Set(failing.faults.map(kindOf));
    let best = failing;
    let left = this.#options.maxShrinks ?? DEFAULT_SHRINKS;
    for (let isSmaller = true; isSmaller; ) {
      isSmaller = false;
      for (const program of smallerThan(best.program, smallerRules)) {
        if (left === 0) return best;
        left -= 1;
        const faults = await this.#faultsOf(program);
        if (!faults.some((fault) => kinds.has(kindOf(fault)))) continue;
        best = { program, faults };
        isSmaller = true;
        break;
      }
    }
    return best;
  }

  async #faultsOf(program: SimulatedProgram): Promise<readonly string[]> {
    const { faults, log } = await this.#playOnce(program);
    if (faults.length > 0 || program.deaths.length > 0 || program.acts.length > 0) return faults;
    return nondeterminism(log, (await this.#playOnce(program)).log);
  }

  #report(programs: number, failing: Failing | undefined, seed: number | null): SimulationReport {
    const faults = (failing?.faults ?? []).map((fault) => (seed === null ? fault : withSeed(fault, seed)));
    return {
      programs,
      ...this.#counts,
      calls: this.#calls,
      faults,
      seed: failing ? seed : null,
      program: failing?.program ?? null,
      test: failing ? testOf(failing.program, faults) : null,
    };
  }
}

interface Failing {
  readonly program: SimulatedProgram;
  readonly faults: readonly string[];
}

/** The seed is in the first line, because a difference of prompts follows in further lines. */
function withSeed(fault: string, seed: number): string {
  const [first = "", ...rest] = fault.split("\n");
  return [`${first}${rest.length > 0 ? ` (seed ${seed})` : `; seed ${seed}`}`, ...rest].join("\n");
}

function runOf<World>({
  world,
  program,
  results = [],
  tree,
  log,
  stores,
}: PlayedSimulation<World>): SimulatedRun<World> {
  const runs = Map.groupBy(log.runs, ({ callId }) => callId);
  const calls = tree.agents.flatMap(({ entries }) =>
    entries.flatMap((entry): SimulatedRunCall[] => {
      if (entry.type !== "tool.settled") return [];
      const { name: tool, callId, outcome } = entry;
      return [{ tool, callId, outcome, runs: runs.get(callId)?.length ?? 0 }];
    }),
  );
  return { world, program, turns: results, calls, effects: log.effects, agentId: ROOT, stores };
}

const smallerRules: SmallerRules = {
  plainest: {},
  field: (name, value) => {
    // Other arguments make another program.
    if (name === "arguments") return [];
    if (name === "failures") return value === 0 ? [] : [0];
    if (name === "isQueued") return value === true ? [false] : [];
    return undefined;
  },
};

function testOf(program: SimulatedProgram, faults: readonly string[]): string {
  const text = JSON.stringify(program, null, 2).replaceAll("\n", "\n    ");
  return `import { simulate } from "troupe/testing";
import { expect, it } from "vitest";

// ${faults.join("\n").replaceAll("\n", "\n// ")}
it("survives the program of a simulation", async () => {
  // The agent, and the options budget and check, as in the call that found it.
  const report = await simulate(agent, {
    program: ${text},
  });
  expect(report.faults).toEqual([]);
});
`;
}
