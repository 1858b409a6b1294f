import { bare, bareOver } from "../bare/index.ts";
import type { Contender } from "../contender.ts";
import { sideOf } from "../conversations.ts";
import { expectedText } from "../model-answers.ts";
import { contenderOn } from "../ours/index.ts";
import { type Scenario, userInput } from "../scenario.ts";
import { servedOn } from "../serving/contender.ts";
import { benchWires } from "../serving/wires.ts";
import { type Pair, type Side, type Study, timed } from "../study.ts";

const common = { parallel: 1, unit: "ms/turn" } as const;
const streamed: Scenario = {
  ...common,
  name: "text",
  title: "an answer of 64 pieces",
  agent: "streaming",
  model: "stream-64",
  turns: 5,
  callsPerTurn: 1,
  conversations: { full: 3, quick: 2 },
};
const looped: Scenario = {
  ...common,
  name: "loop",
  title: "ten steps, nine calls of a tool",
  agent: "tools",
  model: "loop-10",
  turns: 1,
  callsPerTurn: 10,
  conversations: { full: 6, quick: 4 },
};

/** The cost of a turn over each wire, read while it runs, against the same turn in process and against the bare loop. */
export const serving: Study = {
  name: "serving",
  title: "turns over each wire, in memory: an answer in 64 pieces, and ten steps",
  unit: "ms/turn",
  plan: (quick) => (quick ? { warmUps: 2, rounds: 7 } : { warmUps: 3, rounds: 21 }),
  pairs: async (quick) =>
    [streamed, looped].flatMap((scenario) => {
      const conversations = scenario.conversations[quick ? "quick" : "full"];
      const bareSide = sideOf(scenario, bare, conversations);
      const inProcess = sideOf(scenario, contenderOn("memory"), conversations);
      const bareBytes = bytesSide(scenario, bareOver);
      const rowOf = (variant: string, ours: Side, against: Side): Pair => ({
        stores: "memory",
        variant: `${scenario.name}, ${variant}`,
        ours,
        bare: against,
      });
      return [
        rowOf("in process / bare", inProcess, bareSide),
        ...benchWires.flatMap((wire) => {
          const ours = sideOf(scenario, servedOn("memory", wire), conversations);
          const bytes = bytesSide(scenario, (fetching) => servedOn("memory", wire, fetching));
          return [
            rowOf(`${wire.name} / in process`, ours, inProcess),
            rowOf(`${wire.name} / bare`, ours, bareSide),
            { ...rowOf(`${wire.name}, bytes / bare`, bytes, bareBytes), unit: "bytes/turn" as const },
          ];
        }),
      ];
    }),
};

/** Bytes of the request and response bodies of one turn, counted by the client. */
export function bytesSide(scenario: Scenario, over: (fetching: typeof fetch) => Contender): Side {
  const meter = { bytes: 0 };
  const contender = over(meteredFetch(meter));
  return {
    name: `${scenario.name}, bytes of ${contender.name}`,
    prepare: async ({ baseUrl }) => {
      const entrant = await contender.prepare(scenario, baseUrl);
      const sample = async () => {
        const conversation = await entrant.open();
        meter.bytes = 0;
        const { result: text, processorMs } = await timed(() => conversation.turn(userInput));
        if (text !== expectedText(scenario.model)) throw new Error(`${contender.name}: a turn was answered "${text}"`);
        await conversation.close?.();
        return { value: meter.bytes, processorMs };
      };
      return { sample, close: () => entrant.close() };
    },
  };
}

function meteredFetch(meter: { bytes: number }): typeof fetch {
  return async (input, init) => {
    if (typeof init?.body === "string") meter.bytes += Buffer.byteLength(init.body);
    const { body, ...response } = parts(await fetch(input, init));
    const counting = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        meter.bytes += chunk.byteLength;
        controller.enqueue(chunk);
      },
    });
    return new Response(body?.pipeThrough(counting) ?? null, response);
  };
}

function parts({ body, status, headers }: Response) {
  return { body, status, headers };
}
