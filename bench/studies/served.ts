import { sideOf } from "../conversations.ts";
import { contenderOn } from "../ours/index.ts";
import { storeKinds } from "../ours/open-stores.ts";
import { type Scenario, scenarios } from "../scenario.ts";
import { servedOn } from "../serving/contender.ts";
import { startServerProcess } from "../serving/server.ts";
import { listPath, type ServerKind, Wire } from "../serving/wire.ts";
import { apiWires } from "../serving/wires.ts";
import type { Pair, Side, Study } from "../study.ts";

function scenarioOf(name: string, changes: Partial<Scenario>): Scenario {
  const scenario = scenarios.find((one) => one.name === name);
  if (!scenario) throw new Error(`served-turn: there is no scenario ${name}.`);
  return { ...scenario, unit: "ms/turn", ...changes };
}

const turns = {
  turns: scenarioOf("turns-1", { conversations: { full: 30, quick: 8 } }),
  loop: scenarioOf("loop-10", { conversations: { full: 30, quick: 8 } }),
};

/** Turns that a client requests over HTTP, one at a time, against the same turns by `executeTurn`. */
export const servedTurn: Study = {
  name: "served-turn",
  title: "turns of one call, and of ten steps, over the HTTP API against executeTurn in process",
  unit: "ms/turn",
  plan: (quick) => (quick ? { warmUps: 2, rounds: 7 } : { warmUps: 4, rounds: 21 }),
  pairs: async (quick) =>
    Object.entries(turns).flatMap(([name, scenario]) =>
      storeKinds.flatMap((stores): Pair[] => {
        const conversations = scenario.conversations[quick ? "quick" : "full"];
        const bare = sideOf(scenario, contenderOn(stores), conversations);
        return Object.entries(apiWires).map(([way, wire]) => ({
          stores,
          variant: `${name}, ${way}`,
          ours: sideOf(scenario, servedOn(stores, wire), conversations),
          bare,
        }));
      }),
    ),
};

const AT_ONCE = 32;

/** A list that requires a token and does not read the stores, against Hono with such a route on the same adapter. */
export const servedRequests: Study = {
  name: "served-requests",
  title: "requests/s of a cheap route with a token, against bare Hono, each server a process of its own",
  unit: "requests/s",
  plan: (quick) => (quick ? { warmUps: 2, rounds: 9 } : { warmUps: 4, rounds: 31 }),
  pairs: async (quick) => {
    const count = quick ? 4_000 : 10_000;
    return [{ stores: "memory", ours: requestsSide("memory", count), bare: requestsSide("bare", count) }];
  },
};

/** `processorMs` is the server's processor time only. */
export function requestsSide(kind: ServerKind, count: number): Side {
  return {
    name: `requests, ${kind}`,
    prepare: async () => {
      const server = await startServerProcess(kind);
      const wires = Array.from({ length: AT_ONCE }, () => new Wire(server.url));
      const sample = async () => {
        const before = await server.ask({ ask: "weigh" });
        const begun = performance.now();
        await requestAll(wires, count);
        const elapsedMs = performance.now() - begun;
        const after = await server.ask({ ask: "weigh" });
        return { value: (count / elapsedMs) * 1_000, processorMs: (after.processorMs - before.processorMs) / count };
      };
      const close = async (): Promise<void> => {
        for (const wire of wires) wire.close();
        await server.stop();
      };
      return { sample, close };
    },
  };
}

async function requestAll(wires: readonly Wire[], count: number): Promise<void> {
  let left = count;
  const lane = async (wire: Wire): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const answer = await wire.get(listPath);
      if (!answer.startsWith("HTTP/1.1 200 ") || !answer.includes('"name":"agent"')) {
        throw new Error(`served-requests: an answer is ${answer.slice(0, 300)}`);
      }
    }
  };
  await Promise.all(wires.map(lane));
}
