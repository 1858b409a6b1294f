import { setTimeout as delay } from "node:timers/promises";
import { type Ground, withGround } from "../ground.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { hasContainers, startServe } from "../serving/serve-process.ts";
import { type SlowModel, startSlowModel } from "../serving/slow-model.ts";
import { steadyNow } from "../witness.ts";
import { streamedWords } from "./survivor.ts";

/** Downtime of the server, in seconds. */
const PAUSES_S = [0, 1, 5, 12] as const;
const ROUNDS = 16;
const SHORT_ROUNDS = 2;
const LEASE_MS = 10_000;
/** Additional time for a busy machine. */
const GRACE_MS = 3_000;
/** Most time to wait for a turn. */
const LOST_MS = 60_000;

/** Kills `troupe serve` during a turn and starts it with the same host name and pid. A round is one kill. */
export const restart: ChaosScenario = {
  name: "RESTART",
  title:
    "a server in a container is killed in a turn and started again after 0, 1, 5, 12 s: the turn goes on by itself",
  on: ["sqlite", "redis"],
  run: async (options) => {
    const model = await startSlowModel();
    try {
      return await withGround(options, async (ground) => await runRounds(options, model, ground));
    } finally {
      await model.close();
    }
  },
};

async function runRounds(
  { seed, short, rounds = short ? SHORT_ROUNDS : ROUNDS, progress }: ChaosOptions,
  model: SlowModel,
  ground: Ground,
): Promise<ChaosReport> {
  const violations: string[] = [];
  const takenUpMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const pauseS = PAUSES_S[round % PAUSES_S.length] ?? 0;
    const found = await killed({ pauseS, model, place: ground.locationOf(`restart-${round}`) });
    if (typeof found === "string") violations.push(`round ${round}, away for ${pauseS} s: ${found}`);
    else takenUpMs.push(found);
    progress(`${round + 1}/${rounds}: away for ${pauseS} s, ${typeof found === "string" ? found : `${found} ms`}`);
  }
  const counts = { operations: rounds, succeeded: takenUpMs.length, violations };
  return reportOf({ name: restart.name, seed }, counts, { takenUpMs, isContained: hasContainers });
}

interface Round {
  readonly pauseS: number;
  readonly model: SlowModel;
  readonly place: string;
}

/** Milliseconds from the kill until the turn continued, or the violations. */
async function killed({ pauseS, model, place }: Round): Promise<number | string> {
  const serving = { store: streamedWords(place), modelURL: model.baseURL, isContained: hasContainers };
  const first = await startServe(serving);
  const calls = model.calls.length;
  const { agentId } = await json(`${first.url}/api/agents`, { definition: "slow" });
  await json(`${first.url}/api/agents/${agentId}/turns`, { input: "go" });
  while (model.calls.length === calls) await delay(20);
  await delay(500);
  await first.kill();
  const diedAt = steadyNow();
  await delay(pauseS * 1_000);
  const again = await startServe(serving);
  try {
    const upAt = steadyNow();
    const { turns, status } = await ended(`${again.url}/api/turns?agentId=${agentId}`, diedAt + LOST_MS);
    const takenUpAt = model.calls[calls + 1] ?? Number.POSITIVE_INFINITY;
    if (status !== "completed" || turns !== 1) return `${turns} turns, the last is ${status}`;
    if (model.calls.length !== calls + 2) return `${model.calls.length - calls} model calls`;
    const latest = Math.max(diedAt + 1.5 * LEASE_MS, upAt + LEASE_MS / 2) + GRACE_MS;
    const ms = Math.round(takenUpAt - diedAt);
    return takenUpAt <= latest ? ms : `taken up after ${ms} ms`;
  } finally {
    await again.kill();
  }
}

/** Polls the turns of an agent until the last one has ended. */
async function ended(url: string, until: number): Promise<{ readonly turns: number; readonly status: string }> {
  for (;;) {
    const { items } = (await (await fetch(url)).json()) as { readonly items: readonly { readonly status: string }[] };
    const status = items[0]?.status ?? "not there";
    if (status === "completed" || steadyNow() > until) return { turns: items.length, status };
    await delay(100);
  }
}

async function json(url: string, body: object): Promise<{ readonly agentId: string }> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as { readonly agentId: string };
}
