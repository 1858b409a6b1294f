import * as fc from "fast-check";
import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, type ModelRequest, textOf } from "../../src/index.ts";
import { isLegal } from "../../src/context/index.ts";
import { type ScriptedToolCall, scriptedModel } from "../../src/testing/index.ts";
import { randomCases } from "../support/full.ts";
import { orderFault } from "../support/journal-probes.ts";
import { describeRuntimes, type VariantName } from "../support/runtimes.ts";

/** Total number of calls with hostile arguments; 10,000 is the full count of F24. */
const allCalls = randomCases(2_000, 240);
const callsOfPart = 500;

interface Hostile {
  readonly text: string;
  readonly isRight: boolean;
}

const order = fc
  .record({
    item: fc.string(),
    lines: fc.array(fc.record({ count: fc.integer({ min: 1, max: 9 }) }), { maxLength: 4 }),
  })
  .map((value) => JSON.stringify(value));
const part = fc.double({ min: 0, max: 0.999, noNaN: true });
const wrong = (arbitrary: fc.Arbitrary<string>): fc.Arbitrary<Hostile> =>
  arbitrary.map((text) => ({ text, isRight: false }));
const huge = `{"item":"${"a".repeat(5_000_000)}"}`;

/** The generator of each kind determines whether its arguments are right. */
const hostile: fc.Arbitrary<Hostile> = fc.oneof(
  { weight: 6, arbitrary: order.map((text) => ({ text, isRight: true })) },
  // A prefix of an object is never a whole object.
  {
    weight: 6,
    arbitrary: wrong(fc.tuple(order, part).map(([text, at]) => text.slice(0, Math.floor(text.length * at)))),
  },
  {
    weight: 6,
    arbitrary: wrong(fc.oneof(fc.integer(), fc.boolean(), fc.constant(null)).map((item) => JSON.stringify({ item }))),
  },
  { weight: 3, arbitrary: wrong(fc.array(fc.jsonValue(), { maxLength: 4 }).map((value) => JSON.stringify(value))) },
  { weight: 3, arbitrary: wrong(fc.string({ unit: "binary" }).map((text) => `${text}\u0000`)) },
  {
    weight: 3,
    arbitrary: wrong(fc.constantFrom("__proto__", "constructor").map((key) => `{"item":"a","${key}":{"isAdmin":1}}`)),
  },
  {
    weight: 3,
    arbitrary: wrong(
      fc
        .tuple(fc.integer({ min: 300, max: 10_000 }), fc.boolean())
        .map(([depth, isClosed]) => `{"item":"a","x":${"[".repeat(depth)}${isClosed ? "]".repeat(depth) : ""}}`),
    ),
  },
  { weight: 1, arbitrary: wrong(part.map((at) => huge.slice(0, 4_000_000 + Math.floor(at * 1_000_011)))) },
  { weight: 1, arbitrary: wrong(fc.constant(huge)) },
);

const shares: readonly (readonly [VariantName, number])[] = [
  ["memory", 0.8],
  ["memory, restored", 0.1],
  ["sqlite", 0.1],
];

for (const [variant, share] of shares) {
  const calls = Math.ceil(allCalls * share);
  const parts = Array.from({ length: Math.ceil(calls / callsOfPart) }, (_, number) => ({ number }));
  describeRuntimes(
    "hostile tool arguments",
    (stage) => {
      it.each(parts)(
        "F24: no tool runs with them, the model gets an error, the history stays valid: part $number",
        async () => {
          const rounds = new Map<string, readonly ScriptedToolCall[]>();
          const ran: string[] = [];
          const told: ModelRequest[] = [];
          const model = scriptedModel((request) => {
            const asked = textOf(request.messages[0]?.content ?? "");
            if (request.messages.at(-1)?.role !== "tool") return { toolCalls: rounds.get(asked) ?? [] };
            told.push(request);
            return "the end";
          });
          const tool = defineTool({
            name: "order",
            description: "Orders.",
            parameters: z.object({
              item: z.string(),
              lines: z.array(z.object({ count: z.number().int().min(1) })).optional(),
            }),
            effect: "none",
            execute(_args, run) {
              ran.push(run.callId);
              return "ordered";
            },
          });
          const runtime = await stage().open({
            agents: [defineAgent({ name: "worker", model, tools: [tool], maxConsecutiveToolFailures: 2 })],
          });
          const property = fc.asyncProperty(fc.array(hostile, { minLength: 8, maxLength: 8 }), async (round) => {
            ran.length = 0;
            told.length = 0;
            const agentId = `w-${rounds.size}`;
            rounds.set(
              agentId,
              round.map(({ text }) => ({ name: "order", arguments: text })),
            );
            const agent = await runtime.agent("worker", { agentId });
            await agent.start();
            const result = await agent.executeTurn(agentId).result;
            const right = round.flatMap(({ isRight }, index) => (isRight ? [`${agentId}#1:1:${index}`] : []));
            expect(result).toMatchObject({ status: "completed", text: "the end", toolCalls: right.length });
            expect(ran.toSorted()).toEqual(right);
            const [request] = told;
            expect(isLegal(request?.messages ?? [])).toBeUndefined();
            const results = (request?.messages ?? []).slice(2).map(({ content }) => textOf(content));
            expect(results).toEqual(round.map(({ isRight }) => (isRight ? "ordered" : refusal)));
            expect(orderFault(await agent.getMessages())).toBeUndefined();
            // Clears the conversation: it is large and no longer needed.
            await agent.clear();
            rounds.set(agentId, []);
          });
          await fc.assert(property, {
            seed: 20_261_121,
            numRuns: Math.ceil(Math.min(callsOfPart, calls) / 8),
            ...limits,
          });
        },
      );
    },
    [variant],
  );
}

/** Checks the error the model gets for a call that was not run: what happened, what is wrong, what to do; and its length is bounded. */
const refusal = expect.stringMatching(
  /^The tool order was not run: [\s\S]{1,4000}Correct the arguments and call it again\.$/,
) as string;
const limits = { interruptAfterTimeLimit: 170_000, markInterruptAsFailure: true };
