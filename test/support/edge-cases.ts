import { isLegal } from "../../src/context/index.ts";
import type { Account, AgentDefinition, Turn, TurnResult } from "../../src/index.ts";
import { arrivals, auth, openWorker, type Scene } from "./edge-arrivals.ts";
import { type Deed, Edge, type HoldPoint, places } from "./edge-commits.ts";
import { loopTurns, orderFault } from "./journal-probes.ts";
import type { Stage } from "./runtimes.ts";

export interface Case {
  readonly place: HoldPoint;
  readonly deed: Deed;
  readonly arrival: string;
}

export function casesOf(chosenDeeds: readonly Deed[], chosenArrivals: readonly string[]): Case[] {
  return places.flatMap((place) =>
    chosenDeeds.flatMap((deed) => chosenArrivals.map((arrival) => ({ place, deed, arrival }))),
  );
}

/** The result of a turn that must end by itself. */
async function ended(stage: Stage, turn: Turn): Promise<TurnResult> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  turn.result.then(end, end);
  for (let round = 0; !isOver && round < 400; round += 1) {
    await loopTurns(1);
    stage.clock.advance(5);
  }
  if (!isOver) throw new Error("the turn hangs");
  return await turn.result;
}

/**
 * Runs one case with an agent named `worker`. The turn must end, its history be legal, its accounts be at rest, and the agent accept
 * the next turn.
 */
export async function faultsOf(
  stage: Stage,
  definition: (edge: Edge) => AgentDefinition,
  { place, deed, arrival }: Case,
): Promise<(string | undefined)[]> {
  const edge = new Edge(place, deed);
  const process = await openWorker(stage, edge, definition);
  const agent = await process.runtime.agent("worker", { agentId: "w", budget: { maxTokens: 1_000_000 } });
  await agent.start();
  const withCredentials = place !== "resolveAuth";
  const turn = agent.executeTurn("go", { auth: withCredentials ? auth : { actorId: "ada" } });
  const scene: Scene = { stage, edge, definition, process, agent, turn, others: [] };
  await edge.gate.reached();
  await loopTurns(6);
  await arrivals[arrival]?.(scene);
  edge.gate.open();
  for (const open of [scene.turn, ...scene.others]) await ended(stage, open);
  edge.disarm();
  await loopTurns(5);
  const again = await ended(stage, scene.agent.executeTurn("again", { auth }));
  await loopTurns(10);
  const { runtime } = scene.process;
  const { status, openTurnId } = scene.agent.state;
  const tree = await runtime.list({ rootAgentId: "w" });
  const faults = [];
  for (const { agentId } of tree) faults.push(orderFault(await (await runtime.find(agentId)).getMessages()));
  return [
    ...faults,
    ...tree.map((agent) => (agent.openTurnId === null ? undefined : `${agent.openTurnId} is open`)),
    ...edge.requests.map(({ messages }) => isLegal(messages)),
    // Code that was interrupted with its process or its agent runs again, and no other code does (F34).
    ...(/kill|shutdown/.test(arrival) ? [] : edge.repeated().map((run) => `twice: ${run}`)),
    again.status === "completed" ? undefined : `the next turn is ${again.status}`,
    ...(await runtime.accounts("w")).map(restlessness),
    ...(await runtime.requests()).map(({ requestId }) => `request ${requestId} is open`),
    status === "ready" && openTurnId === null ? undefined : `the agent is ${status} with ${String(openTurnId)}`,
  ];
}

function restlessness({ id, reserved, activeCount }: Account): string | undefined {
  if (reserved.tokens === 0 && activeCount === 0) return undefined;
  return `account ${id}: ${reserved.tokens} tokens reserved, ${activeCount} active`;
}
