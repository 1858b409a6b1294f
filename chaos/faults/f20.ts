import { z } from "zod";
import {
  type Agent,
  type AgentRequest,
  createRuntime,
  defineAgent,
  defineTool,
  type Json,
  RequestConflictError,
  type Runtime,
  type TurnResult,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { withGround } from "../ground.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { storesAt } from "../stores-at.ts";

const ROUNDS = 1_000;
const SHORT_ROUNDS = 150;
/** Concurrent agents whose approvals are contested. */
const LANES = 8;
/** A turn that takes longer to end after its decision is stuck, in milliseconds. */
const STUCK_MS = 20_000;
const AMOUNT = 5;

const verdicts = ["approved", "edited", "rejected"] as const;

/** A decider: its client, its verdict, and its delay after the first in turns of the event loop. */
interface Decider {
  readonly by: string;
  readonly isMine: boolean;
  readonly verdict: (typeof verdicts)[number];
  readonly amount: number;
  readonly turnsBefore: number;
}

/** All effects, by turn. */
type Effects = Map<string, Json[]>;

interface Clients {
  readonly mine: Runtime;
  readonly theirs: Runtime;
}

/** 2 to 8 people decide one approval at once. A round is one approval. */
export const f20: ChaosScenario = {
  name: "F20",
  title:
    "2 to 8 people decide one approval at once, over two clients of one store: one wins, the others receive the winner",
  on: ["sqlite", "redis"],
  run: runF20,
};

async function runF20(options: ChaosOptions): Promise<ChaosReport> {
  return await withGround(options, (ground) => runContests(options, ground.locationOf("f20")));
}

async function runContests(
  { seed, short, rounds: asked, progress }: ChaosOptions,
  place: string,
): Promise<ChaosReport> {
  const rounds = asked ?? (short ? SHORT_ROUNDS : ROUNDS);
  const random = seededRandom(seed);
  const contests = Array.from({ length: rounds }, (_, round) => decidersOf(round, random));
  const effects: Effects = new Map();
  const clients: Clients = {
    mine: await createRuntime({ agents: [payerNoting(effects)], stores: storesAt(place) }),
    // This client cannot run agents; it only decides.
    theirs: await createRuntime({ agents: [], stores: storesAt(place) }),
  };
  const violations: string[] = [];
  const wonBy = { mine: 0, theirs: 0 };
  let next = 0;
  let succeeded = 0;
  const lane = async (name: string): Promise<void> => {
    const agent = await clients.mine.agent("payer", { agentId: name });
    await agent.start();
    for (let round = next; round < rounds; round = next) {
      next += 1;
      const deciders = contests[round] ?? [];
      const { winner, faults } = await fight(clients, agent, deciders, effects);
      violations.push(...faults.map((text) => `round ${round + 1}: ${text}`));
      if (faults.length === 0) succeeded += 1;
      if (winner) wonBy[winner.isMine ? "mine" : "theirs"] += 1;
      if ((round + 1) % 100 === 0) progress(`${round + 1} of ${rounds} rounds`);
    }
  };
  try {
    await Promise.all(Array.from({ length: LANES }, (_, index) => lane(`payer-${index + 1}`)));
  } finally {
    await clients.theirs.shutdown();
    await clients.mine.shutdown();
  }
  const decisions = contests.reduce((sum, deciders) => sum + deciders.length, 0);
  return reportOf({ name: "F20", seed }, { operations: rounds, succeeded, violations }, { rounds, decisions, wonBy });
}

function decidersOf(round: number, random: SeededRandom): Decider[] {
  return Array.from({ length: random.between(2, 8) }, (_, index) => ({
    by: `person ${index + 1}`,
    isMine: random.next() < 0.5,
    verdict: random.pick(verdicts),
    amount: 100 + round * 10 + index,
    turnsBefore: random.between(0, 3),
  }));
}

/** A `once` tool whose calls all need approval, and a model that requests one payment per turn. */
function payerNoting(effects: Effects) {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({ amount: z.number() }),
    needsApproval: true,
    execute: (args, run) => {
      effects.set(run.turnId, [...(effects.get(run.turnId) ?? []), { ...args }]);
      return "paid";
    },
  });
  const wish = { toolCalls: [{ name: "pay", arguments: { amount: AMOUNT } }] };
  const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "user" ? wish : "done"));
  return defineAgent({ name: "payer", model, tools: [pay] });
}

interface Fight {
  readonly winner: Decider | undefined;
  readonly faults: readonly string[];
}

async function fight(clients: Clients, agent: Agent, deciders: readonly Decider[], effects: Effects): Promise<Fight> {
  const turn = agent.executeTurn("pay");
  const rest = await turn.settled;
  const [request] = rest.status === "waiting" && rest.reason === "request" ? rest.requests : [];
  if (!request) return { winner: undefined, faults: [`the turn opened no request: ${JSON.stringify(rest)}`] };
  const outcomes = await Promise.allSettled(deciders.map((decider) => decideAs(clients, request, decider)));
  const winners = deciders.filter((_, index) => outcomes[index]?.status === "fulfilled");
  const [winner] = winners;
  if (!winner || winners.length > 1) return { winner, faults: [`${winners.length} of ${deciders.length} won`] };
  const result = await within(turn.result, STUCK_MS);
  if (!result) return { winner, faults: ["the turn was decided and did not go on"] };
  const late = await Promise.allSettled([decideAs(clients, request, { ...winner, by: "a late decider" })]);
  const stored = await clients.theirs.requests({ turnId: result.turnId, status: "decided" });
  return {
    winner,
    faults: [
      ...[...outcomes, ...late].flatMap((outcome) => (outcome.status === "rejected" ? untold(outcome, winner) : [])),
      ...(late[0]?.status === "fulfilled" ? ["it was decided once more after the turn had ended"] : []),
      ...(stored.length === 1 && stored[0]?.decision?.by === winner.by ? [] : ["another decision is stored"]),
      ...effectFaults(result, winner, effects.get(result.turnId) ?? []),
    ],
  };
}

async function decideAs({ mine, theirs }: Clients, request: AgentRequest, decider: Decider): Promise<AgentRequest> {
  const { by, isMine, verdict, amount, turnsBefore } = decider;
  for (let turn = 0; turn < turnsBefore; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  const { requestId, argumentsHash } = request;
  const edit = verdict === "edited" ? { arguments: { amount } } : {};
  return await (isMine ? mine : theirs).decide(requestId, { verdict, by, argumentsHash, ...edit });
}

/** Each later decider receives the winner and the winner's verdict. */
function untold({ reason }: PromiseRejectedResult, winner: Decider): string[] {
  const isTold =
    reason instanceof RequestConflictError &&
    reason.details["by"] === winner.by &&
    reason.details["verdict"] === winner.verdict;
  return isTold ? [] : [`a loser received "${String(reason)}", though ${winner.by} won`];
}

function effectFaults(result: TurnResult, { verdict, amount }: Decider, done: readonly Json[]): string[] {
  const wanted = { approved: [{ amount: AMOUNT }], edited: [{ amount }], rejected: [] }[verdict];
  const faults = result.status === "completed" ? [] : [`the turn ended ${result.status}: ${result.text}`];
  if (JSON.stringify(done) === JSON.stringify(wanted)) return faults;
  return [...faults, `${verdict}, and yet ${JSON.stringify(done)} was done instead of ${JSON.stringify(wanted)}`];
}

async function within<Value>(work: Promise<Value>, milliseconds: number): Promise<Value | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, milliseconds, undefined);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
