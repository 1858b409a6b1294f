import type { Contender, Entrant } from "./contender.ts";
import { expectedText } from "./model-answers.ts";
import type { ModelProcess } from "./model-process.ts";
import { type Scenario, userInput } from "./scenario.ts";

/** How often each contender does the work of a scenario. Warm-up samples are checked like the others and not counted. */
export interface Plan {
  readonly warmUps: number;
  readonly rounds: number;
  /** Conversations of one sample. */
  readonly conversations: number;
}

export interface Sample {
  /** In the scenario's unit. */
  readonly value: number;
  /** Processor time of this process per turn, in milliseconds: other work on the machine disturbs it less than `value`. */
  readonly processorMs: number;
}

/** One sample for each round, by the contender's place in the list. */
export type Samples = readonly (readonly Sample[])[];

/**
 * Runs the contenders in turns: each round has one sample of each, and the next round starts with another one of them, so that
 * whatever the machine does meanwhile falls on all. Throws when an answer or the number of model calls is not the expected one.
 */
export async function measure(
  scenario: Scenario,
  contenders: readonly Contender[],
  { plan, server }: { readonly plan: Plan; readonly server: ModelProcess },
): Promise<Samples> {
  const entrants: Entrant[] = [];
  const samples: Sample[][] = contenders.map(() => []);
  try {
    for (const contender of contenders) entrants.push(await contender.prepare(scenario, server.baseUrl));
    for (let round = -plan.warmUps; round < plan.rounds; round += 1) {
      for (let place = 0; place < entrants.length; place += 1) {
        const index = (place + round + plan.warmUps) % entrants.length;
        const entrant = entrants[index];
        if (entrant === undefined) continue;
        const name = contenders[index]?.name ?? "";
        const sample = await takeSample(scenario, entrant, { conversations: plan.conversations, server, name });
        if (round >= 0) samples[index]?.push(sample);
      }
    }
  } finally {
    await Promise.all(entrants.map((entrant) => entrant.close()));
  }
  return samples;
}

interface SampleOptions {
  readonly conversations: number;
  readonly server: ModelProcess;
  readonly name: string;
}

async function takeSample(scenario: Scenario, entrant: Entrant, options: SampleOptions): Promise<Sample> {
  const { conversations, server, name } = options;
  const before = await server.answered();
  const processor = process.cpuUsage();
  const start = performance.now();
  const texts = await converse(scenario, entrant, conversations);
  const elapsed = performance.now() - start;
  const { user, system } = process.cpuUsage(processor);
  const expected = expectedText(scenario.model);
  const wrong = texts.find((text) => text !== expected);
  if (wrong !== undefined) {
    throw new Error(`${scenario.name}, ${name}: expected the answer ${excerpt(expected)}, got ${excerpt(wrong)}.`);
  }
  const calls = (await server.answered()) - before;
  const expectedCalls = texts.length * scenario.callsPerTurn;
  if (calls !== expectedCalls) {
    throw new Error(`${scenario.name}, ${name}: expected ${expectedCalls} model calls in a sample, counted ${calls}.`);
  }
  const lanes = Math.min(scenario.parallel, conversations);
  const value = scenario.unit === "turns/s" ? (texts.length / elapsed) * 1000 : (elapsed * lanes) / texts.length;
  return { value, processorMs: (user + system) / 1000 / texts.length };
}

/** All conversations, so many at a time; gives the answers of all turns. */
async function converse(scenario: Scenario, entrant: Entrant, conversations: number): Promise<readonly string[]> {
  const texts: string[] = [];
  let opened = 0;
  const lane = async (): Promise<void> => {
    while (opened < conversations) {
      opened += 1;
      const conversation = await entrant.open();
      for (let turn = 0; turn < scenario.turns; turn += 1) texts.push(await conversation.turn(userInput));
    }
  };
  await Promise.all(Array.from({ length: Math.min(scenario.parallel, conversations) }, lane));
  return texts;
}

function excerpt(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
