import { expect, test } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, type LanguageModel, memoryStores, run } from "../../../src/index.ts";
import { type Capability, measure } from "./capabilities.ts";
import type { ModelFamily } from "./families.ts";
import { familyServer } from "./model-server.ts";
import { sentIds, thoughtIn } from "./request-shape.ts";

const height = defineTool({
  name: "height",
  description: "Looks a height up.",
  parameters: z.object({ of: z.string() }),
  effect: "none",
  execute: ({ of }) => `${of}: 3,967 m`,
});

/** What each family sends of earlier turns, as its first conversation has shown. */
const shown = new Map<string, string>();

/** Measures a capability in each conversation of a family; it must always be the same. */
function measureAgain(family: ModelFamily, capability: Capability, value: boolean | string): void {
  const key = JSON.stringify([family.name, capability]);
  expect(String(value)).toBe(shown.get(key) ?? String(value));
  shown.set(key, String(value));
  measure(family.name, capability, value);
}

/** A conversation that two models lead in turns, with thoughts and parallel calls of both. */
export function conversationContract(one: ModelFamily, other: ModelFamily): void {
  test(`${one.name} and ${other.name} continue each other's conversation`, async () => {
    const servers = await Promise.all([one, other].map((family) => familyServer(family, repliesOf(family))));
    const [first, second] = servers;
    if (!first || !second) throw new Error("a server is missing");
    const stores = memoryStores();
    const turn = async (model: LanguageModel, text: string): Promise<string> => {
      const agent = defineAgent({ name: "guide", model, tools: [height] });
      return (await run(agent, text, { stores, agentId: "desk" })).text;
    };
    const models = servers.map((server) => server.model()) as [LanguageModel, LanguageModel];
    expect(await turn(models[0], "How high are Eiger and Mönch?")).toBe(`Answer of ${one.name}.`);
    expect(await turn(models[1], "And the Jungfrau?")).toBe(`Answer of ${other.name}.`);
    expect(await turn(models[0], "Sure?")).toBe(`Later answer of ${one.name}.`);
    expect(await turn(models[1], "Really?")).toBe(`Later answer of ${other.name}.`);

    const [, , third] = first.bodies;
    const [begun, , fourth] = second.bodies;
    expectContinued({ body: begun, reader: other, writer: one });
    expectContinued({ body: third, reader: one, writer: other });
    expectContinued({ body: fourth, reader: other, writer: one });
    expectOwn(third, one);
    expectOwn(fourth, other);
  });
}

const thoughtOf = (family: ModelFamily): string => `Two lookups of ${family.name}.`;

function repliesOf(family: ModelFamily) {
  const calls = ["Eiger", "Mönch"].map((of, index) => ({
    id: `${family.ownId ?? "none"}${index}`,
    name: "height",
    arguments: { of },
  }));
  return [
    { thought: thoughtOf(family), text: `I look, says ${family.name}.`, calls },
    { text: `Answer of ${family.name}.` },
    { text: `Later answer of ${family.name}.` },
  ];
}

interface Continued {
  readonly body: unknown;
  readonly reader: ModelFamily;
  readonly writer: ModelFamily;
}

/** The answer, the calls and the results of the other model are there, its thought is not, and all ids are legal. */
function expectContinued({ body, reader, writer }: Continued): void {
  const sent = JSON.stringify(body);
  measureAgain(reader, "Text beside calls", sent.includes(`I look, says ${writer.name}.`));
  expect(sent).toContain(`Answer of ${writer.name}.`);
  expect(sent).toContain("Mönch: 3,967 m");
  expect(thoughtIn(body, thoughtOf(writer))).toBe("–");
  const { calls, results } = sentIds(body);
  expect(new Set(calls).size).toBe(calls.length);
  expect(results).toEqual(calls);
  for (const id of calls) expect(id).toMatch(reader.legalId);
}

/** The model's own thought is there as always, and its calls have the ids that it gave them. */
function expectOwn(body: unknown, family: ModelFamily): void {
  measureAgain(family, "Thoughts of earlier turns", thoughtIn(body, thoughtOf(family)));
  const { calls } = sentIds(body);
  const own = calls.filter((id) => family.ownId !== undefined && id.startsWith(family.ownId));
  expect(own).toHaveLength(family.ownId === undefined || calls.length === 0 ? 0 : 2);
}

/** Every pair of families. */
export function conversationsContract(families: readonly ModelFamily[]): void {
  for (const [index, one] of families.entries()) {
    for (const other of families.slice(index + 1)) conversationContract(one, other);
  }
}
