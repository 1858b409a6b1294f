import type { Agent, AgentDefinition, Turn } from "../../src/index.ts";
import type { Edge } from "./edge-commits.ts";
import { loopTurns } from "./journal-probes.ts";
import type { Stage, StagedProcess } from "./runtimes.ts";

/** The actor of the turns. */
export const auth = { actorId: "ada", credentials: "token" } as const;

/** The state of a case while the code at the edge is running. */
export interface Scene {
  readonly stage: Stage;
  readonly edge: Edge;
  readonly definition: (edge: Edge) => AgentDefinition;
  process: StagedProcess;
  agent: Agent;
  turn: Turn;
  /** Further turns that must end. */
  readonly others: Turn[];
}

export type Arrival = (scene: Scene) => Promise<void>;

const pauses = async ({ agent }: Scene, now: boolean): Promise<void> => {
  void agent.pause({ now });
  await loopTurns(12);
};

const restarts = async (scene: Scene): Promise<void> => {
  const { stage, edge } = scene;
  scene.process.kill();
  stage.expireLeases();
  edge.disarm();
  scene.process = await openWorker(stage, edge, scene.definition);
  const { runtime } = scene.process;
  scene.agent = await runtime.find("w");
  await scene.agent.start();
  scene.turn = scene.agent.turn("w#1");
};

/** All arrivals by name. */
export const arrivals: Readonly<Record<string, Arrival>> = {
  nothing: async () => undefined,
  abort: async ({ turn }) => await turn.abort(),
  supersede: async ({ agent, others }) => {
    others.push(agent.executeTurn("instead", { auth, ifBusy: "supersede" }));
    await loopTurns(12);
  },
  "pause, resume": async (scene) => {
    await pauses(scene, false);
    void scene.agent.resume();
    await loopTurns(12);
  },
  "pause now, resume": async (scene) => {
    await pauses(scene, true);
    void scene.agent.resume();
    await loopTurns(12);
  },
  "pause, resume when it is through": async (scene) => {
    await pauses(scene, false);
    scene.edge.gate.open();
    await loopTurns(30);
    void scene.agent.resume();
    await loopTurns(12);
  },
  "pause, abort": async (scene) => {
    await pauses(scene, false);
    await scene.turn.abort();
  },
  "pause, abort when it is through": async (scene) => {
    await pauses(scene, false);
    scene.edge.gate.open();
    await loopTurns(30);
    await scene.turn.abort();
    await loopTurns(10);
    // It may have ended while the agent was paused; an abort then does not end the pause.
    if (scene.agent.state.status === "paused") await scene.agent.resume();
  },
  "pause, supersede, resume": async (scene) => {
    await pauses(scene, false);
    scene.others.push(scene.agent.executeTurn("instead", { auth, ifBusy: "supersede" }));
    await loopTurns(12);
    void scene.agent.resume();
    await loopTurns(12);
  },
  "abort, abort": async ({ turn, agent }) => {
    await Promise.all([turn.abort(), agent.abort(), turn.abort()]);
  },
  "supersede, supersede": async ({ agent, others }) => {
    others.push(agent.executeTurn("instead", { auth, ifBusy: "supersede" }));
    await loopTurns(1);
    others.push(agent.executeTurn("no, this", { auth, ifBusy: "supersede" }));
    await loopTurns(12);
  },
  "supersede, abort": async ({ agent, others, turn }) => {
    others.push(agent.executeTurn("instead", { auth, ifBusy: "supersede" }));
    await turn.abort();
    await loopTurns(12);
  },
  "queue, abort": async ({ agent, others, turn }) => {
    others.push(agent.executeTurn("then", { auth, ifBusy: "queue" }));
    await loopTurns(2);
    await turn.abort();
    await loopTurns(12);
  },
  "pause, resume at once": async ({ agent }) => {
    void agent.pause();
    await agent.resume();
    void agent.pause({ now: true });
    await agent.resume();
    await loopTurns(12);
  },
  "pause, pause now, time limit, resume": async (scene) => {
    await pauses(scene, false);
    await pauses(scene, true);
    scene.stage.clock.advance(20_000);
    await loopTurns(12);
    void scene.agent.resume();
    await loopTurns(12);
  },
  "time limit": async ({ stage }) => {
    stage.clock.advance(31_000);
    await loopTurns(12);
  },
  "shutdown and start": async (scene) => {
    await scene.agent.shutdown();
    await loopTurns(3);
    scene.edge.disarm();
    await scene.agent.start();
  },
  kill: restarts,
  "abort, kill": async (scene) => {
    await scene.turn.abort();
    await restarts(scene);
  },
  "pause, kill, resume": async (scene) => {
    await pauses(scene, false);
    await restarts(scene);
    void scene.agent.resume();
    await loopTurns(12);
  },
};

/** A process that holds the agent and resolves credentials for turns without any. */
export async function openWorker(
  stage: Stage,
  edge: Edge,
  definition: (edge: Edge) => AgentDefinition,
): Promise<StagedProcess> {
  const resolveAuth = async () => {
    await edge.at("resolveAuth", "");
    return auth;
  };
  return await stage.openProcess({ agents: [definition(edge)], resolveAuth });
}
