import { type AgentDefinition, type AgentTool, collectDefinitions } from "../../agents/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { Json } from "../../state/index.ts";
import {
  actNames,
  decisionNames,
  momentNames,
  type SimulatedAnswer,
  type SimulatedProgram,
  type SimulatedProgramCall,
  type SimulatedTurn,
} from "./program.ts";
import { valueFor } from "./schema-values.ts";
import { fractionOf, type SeededRandom, seededRandom } from "./seeded-random.ts";

/** Arguments of tools by their names, given by the user: one is chosen for each call. */
export type GivenArguments = Readonly<Record<string, readonly Json[]>>;

/** What programs for an agent are drawn from. */
export interface DrawOptions {
  readonly definition: AgentDefinition;
  readonly inputs: readonly string[];
  readonly given: GivenArguments;
  /** Whether processes die. */
  readonly kills: boolean;
}

/** Values per tool that programs choose from. */
const VALUES = 24;
const TRIES = 200;
const MOST_HITS: Readonly<Record<(typeof momentNames)[number], number>> = {
  "before commit": 16,
  "after commit": 16,
  "model asked": 4,
  "tool begun": 3,
  effect: 3,
  "tool ended": 3,
};

/** The tools of each agent, with arguments that fit their schemas. */
export type Catalog = ReadonlyMap<string, AgentTools>;
type AgentTools = readonly { readonly name: string; readonly values: readonly Json[] }[];

/**
 * Collects the tools of a definition and its subagents.
 * @throws InvalidInputError for a tool whose schema no generated value fits.
 */
export async function catalogOf({ definition, given }: DrawOptions): Promise<Catalog> {
  const agents = [...collectDefinitions([definition])];
  const names = new Set(agents.flatMap(([, { tools }]) => tools.tools.map(({ name }) => name)));
  const unknown = Object.keys(given).find((name) => !names.has(name));
  if (unknown !== undefined) {
    throw new InvalidInputError(
      `simulate(): arguments names "${unknown}", but the agent and its subagents have no such tool; they have ${[...names].join(", ")}`,
    );
  }
  const catalog = new Map<string, { name: string; values: readonly Json[] }[]>();
  for (const [name, { tools }] of agents) {
    const own = [];
    for (const tool of tools.tools) {
      const values = await valuesOf(tool, given[tool.name]);
      if (values.length > 0) own.push({ name: tool.name, values });
    }
    catalog.set(name, own);
  }
  return catalog;
}

async function valuesOf(tool: AgentTool, given: readonly Json[] | undefined): Promise<readonly Json[]> {
  if (!("parse" in tool)) return [];
  const fits = async (value: Json): Promise<boolean> => (await tool.parse(JSON.stringify(value))).ok;
  if (given !== undefined) {
    for (const value of given) {
      if (await fits(value)) continue;
      throw new InvalidInputError(
        `simulate(): arguments.${tool.name} has ${JSON.stringify(value)}, which does not fit the tool's schema; expected arguments that the tool accepts`,
      );
    }
    return given;
  }
  const random = seededRandom(fractionOf(tool.name) * 2 ** 32);
  const values: Json[] = [];
  for (let tries = 0; tries < TRIES && values.length < VALUES; tries += 1) {
    const value = valueFor(tool.jsonSchema, random);
    if (await fits(value)) values.push(value);
  }
  if (values.length > 0) return values;
  throw new InvalidInputError(
    `simulate(): none of ${TRIES} generated arguments fits the schema of tool "${tool.name}"; give some with arguments: { ${JSON.stringify(tool.name)}: [{ … }] }`,
  );
}

/** The program of a seed. The same seed and definition give the same program. */
export function drawProgram(
  seed: number,
  catalog: Catalog,
  { definition, inputs, kills }: DrawOptions,
): SimulatedProgram {
  // Neighbouring seeds give unrelated programs.
  const random = seededRandom(Math.imul(seed + 1, 0x9e3779b1));
  const turns = Array.from(
    { length: random.between(1, 2) },
    (_, index): SimulatedTurn => ({
      input: random.pick(inputs),
      answers: drawAnswers(random, catalog.get(definition.name), 3),
      isQueued: index > 0 && random.next() < 0.5,
    }),
  );
  const names = [...catalog.keys()].filter((name) => name !== definition.name);
  const subagents = names.map((name) => [name, drawAnswers(random, catalog.get(name), 2)] as const);
  return {
    turns,
    subagents: Object.fromEntries(subagents),
    decisions: rarely(random, 0.6, 3).map(() => random.pick(decisionNames)),
    acts: rarely(random, 0.4, 2).map(() => ({ at: random.between(1, 8), does: random.pick(actNames) })),
    deaths: !kills
      ? []
      : rarely(random, 0.7, 2).map(() => {
          const at = random.pick(momentNames);
          return { at, hit: random.between(1, MOST_HITS[at]) };
        }),
  };
}

function rarely(random: SeededRandom, share: number, most: number): undefined[] {
  const length = random.next() < share ? random.between(1, most) : 0;
  return Array.from({ length });
}

function drawAnswers(random: SeededRandom, tools: AgentTools = [], most: number): SimulatedAnswer[] {
  if (tools.length === 0) return [];
  return Array.from({ length: random.between(1, most) }, () => {
    const calls = Array.from({ length: random.between(1, most) }, (): SimulatedProgramCall => {
      const { name, values } = random.pick(tools);
      // Models sometimes send arguments that are no JSON, or that do not fit.
      const isBroken = random.next() < 0.04;
      return { tool: name, arguments: isBroken ? random.pick<Json>(["{", {}]) : random.pick(values) };
    });
    return random.next() < 0.12 ? { calls, failures: random.between(1, 2) } : { calls };
  });
}
