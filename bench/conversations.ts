import type { Contender, Entrant } from "./contender.ts";
import { expectedText } from "./model-answers.ts";
import type { ModelProcess } from "./model-process.ts";
import { type Scenario, userInput } from "./scenario.ts";
import { type Pair, type Sample, type Side, type Study, timed } from "./study.ts";

/** A scenario as a study: troupe in memory and on SQLite, and the requested other libraries, against the bare loop. */
export function studyOf(scenario: Scenario, peers: readonly Contender[] = []): Study {
  const { name, title, unit } = scenario;
  return {
    name,
    title,
    unit,
    plan: (quick) => (quick ? { warmUps: 2, rounds: 7 } : { warmUps: 24, rounds: 21 }),
    pairs: async (quick) => {
      const conversations = scenario.conversations[quick ? "quick" : "full"];
      const { bare } = await import("./bare/index.ts");
      const { oursInMemory, oursOnSqlite } = await import("./ours/index.ts");
      const bareSide = sideOf(scenario, bare, conversations);
      return [
        ...[oursInMemory, oursOnSqlite].map(
          (ours): Pair => ({ stores: ours.name, ours: sideOf(scenario, ours, conversations), bare: bareSide }),
        ),
        ...peers.map(
          (peer): Pair => ({
            stores: "none",
            contender: peer.name,
            ours: sideOf(scenario, peer, conversations),
            bare: bareSide,
          }),
        ),
      ];
    },
  };
}

/**
 * A side that runs a scenario with a contender. A sample throws if an answer, or the number of model calls that the server
 * counted, is not as expected.
 */
export function sideOf(scenario: Scenario, contender: Contender, conversations: number): Side {
  return {
    name: contender.name,
    prepare: async (server) => {
      const entrant = await contender.prepare(scenario, server.baseUrl);
      const options = { conversations, server, name: contender.name };
      return { sample: () => takeSample(scenario, entrant, options), close: () => entrant.close() };
    },
  };
}

interface SampleOptions {
  readonly conversations: number;
  readonly server: ModelProcess;
  readonly name: string;
}

async function takeSample(scenario: Scenario, entrant: Entrant, options: SampleOptions): Promise<Sample> {
  const { conversations, server, name } = options;
  const before = await server.answered();
  const { result: texts, elapsedMs, processorMs } = await timed(() => converse(scenario, entrant, conversations));
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
  const value = scenario.unit === "turns/s" ? (texts.length / elapsedMs) * 1000 : (elapsedMs * lanes) / texts.length;
  return { value, processorMs: processorMs / texts.length };
}

/** Runs all conversations, `scenario.parallel` at a time. Returns the answers of all turns. */
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
