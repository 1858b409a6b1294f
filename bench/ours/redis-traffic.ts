import { createRuntime, defineAgent, windowHistory } from "../../src/index.ts";
import type { Redis } from "ioredis";
import { commandsOf } from "../../test/support/redis-counts.ts";
import { answerText } from "../model-answers.ts";
import { instructions, userInput } from "../scenario.ts";
import { type Sample, type Side, timed } from "../study.ts";
import { lookupTool } from "./agents.ts";
import { wholeAnswer } from "./index.ts";
import { instantModel } from "./instant-model.ts";
import { openRedis } from "./open-stores.ts";

/** A tool call and the answer. */
const STEPS = 2;
const AGENTS = 4;
/** A lease so long that no sample includes a heartbeat, whose cost does not depend on the number of steps. */
const QUIET_MS = 3_600_000;

export const trafficFigures = ["commands", "bytes sent", "bytes answered"] as const;
export type TrafficFigure = (typeof trafficFigures)[number];

export interface TrafficOptions {
  /** Number of earlier turns of the four agents in each sample; 0 for new agents. */
  readonly turnsBefore: number;
}

/**
 * Commands and bytes to and from Redis per step of a turn whose prompt does not grow. Opening the agents, their earlier
 * turns and heartbeats are not counted.
 */
export function trafficSides(options: TrafficOptions): Readonly<Record<TrafficFigure, Side>> {
  const shared = sharedStation(options);
  const side = (figure: TrafficFigure): Side => ({
    name: `${figure} after ${options.turnsBefore} turns`,
    prepare: async () => {
      await shared.open();
      let round = 0;
      const sample = async (): Promise<Sample> => {
        const { figures, processorMs } = await shared.sampleOf(round);
        round += 1;
        return { value: figures[figure], processorMs };
      };
      return { sample, close: () => shared.close() };
    },
  });
  return {
    commands: side("commands"),
    "bytes sent": side("bytes sent"),
    "bytes answered": side("bytes answered"),
  };
}

interface Traffic {
  readonly figures: Readonly<Record<TrafficFigure, number>>;
  readonly processorMs: number;
}

/** One turn per round yields all figures: the side that is sampled first in a round runs it. */
function sharedStation(options: TrafficOptions) {
  let ready: Promise<Awaited<ReturnType<typeof stationOf>>> | undefined;
  const samples: Promise<Traffic>[] = [];
  let users = 0;
  return {
    open: async (): Promise<void> => {
      users += 1;
      ready ??= stationOf(options);
      await ready;
    },
    sampleOf: async (round: number): Promise<Traffic> => {
      const station = await ready;
      if (!station) throw new Error("redis-traffic: sampled before it was opened");
      return await (samples[round] ??= station.sample());
    },
    close: async (): Promise<void> => {
      users -= 1;
      if (users === 0) await (await ready)?.close();
    },
  };
}

async function stationOf({ turnsBefore }: TrafficOptions) {
  const { stores, server, remove } = await openRedis();
  const definition = defineAgent({
    name: "agent",
    model: instantModel(STEPS),
    instructions,
    tools: [lookupTool],
    history: windowHistory(1, { upTo: 1 }),
    budget: { maxTokens: 1_000_000_000 },
  });
  const runtime = await createRuntime({ agents: [definition], stores, leaseMs: QUIET_MS });
  const client = server.client();
  const open = async () => {
    const agent = await runtime.agent("agent");
    await agent.start();
    return agent;
  };
  const openAll = () => Promise.all(Array.from({ length: AGENTS }, open));
  const takeTurn = async (agents: Awaited<ReturnType<typeof openAll>>): Promise<void> => {
    for (const agent of agents) {
      const text = await wholeAnswer(agent, userInput);
      if (text !== answerText) throw new Error(`redis-traffic: expected the answer ${answerText}, got ${text}.`);
    }
  };
  const lasting = await openAll();
  for (let turn = 0; turn < turnsBefore; turn += 1) await takeTurn(lasting);
  return {
    sample: async (): Promise<Traffic> => {
      const steps = AGENTS * STEPS;
      const agentsOf = async () => (turnsBefore === 0 ? await openAll() : lasting);
      const [counted, weighed] = [await agentsOf(), await agentsOf()];
      const commands = await commandsOf(client, () => takeTurn(counted));
      // Counting sends every command to this client too, so the bytes are counted in another turn.
      const before = await bytesOf(client);
      const { processorMs } = await timed(() => takeTurn(weighed));
      const after = await bytesOf(client);
      if (turnsBefore === 0) await Promise.all([...counted, ...weighed].map((agent) => agent.shutdown()));
      const figures = {
        commands: commands / steps,
        "bytes sent": (after.sent - before.sent) / steps,
        "bytes answered": (after.answered - before.answered) / steps,
      };
      return { figures, processorMs: processorMs / steps };
    },
    close: async (): Promise<void> => {
      client.disconnect();
      await runtime.shutdown();
      await remove();
    },
  };
}

/** Figures of all connections, since the server was started. */
async function bytesOf(client: Redis): Promise<{ readonly sent: number; readonly answered: number }> {
  const stats = await client.info("stats");
  const of = (name: string): number => Number(new RegExp(`${name}:(\\d+)`).exec(stats)?.[1]);
  return { sent: of("total_net_input_bytes"), answered: of("total_net_output_bytes") };
}
