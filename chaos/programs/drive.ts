import { type Agent, type AgentRequest, type Runtime, TroupeError } from "../../src/index.ts";
import { DEFAULT_TENANT } from "../../src/state/index.ts";
import { fractionOf } from "../seeded-random.ts";
import { inputOf, leadOf, receivesRejection } from "./cast.ts";
import type { PlannedAct, Program } from "./program.ts";
import type { World } from "./world.ts";

const LOOK_MS = 8;
const SLOWEST_LOOK_MS = 120;
const EDITED = 0.2;

/** Brings so many programs at a time to their ends; one that fails does not keep the others from theirs. */
export async function driveAll(driver: Driver, programs: ReadonlyMap<string, Program>, width: number): Promise<void> {
  const left = [...programs];
  const lane = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await driver.run(...next);
  };
  await Promise.all(Array.from({ length: width }, lane));
}

/**
 * Brings programs to their ends as the process of a user would: sends turns, waits for them, decides what is asked, ends pauses,
 * and does what is planned in between. Whatever an earlier process has sent is sent again under its key.
 */
export class Driver {
  readonly #runtime: Runtime;
  readonly #world: World;
  readonly #agents = new Map<string, Agent>();
  readonly #acting = new Map<string, Set<Promise<void>>>();

  constructor(runtime: Runtime, world: World) {
    this.#runtime = runtime;
    this.#world = world;
    world.onAct = (root, does) => this.#begin(root, does);
  }

  /** Resolves when the program's tree is at rest for good, or has failed in a way in which none may. */
  async run(root: string, program: Program): Promise<void> {
    try {
      await this.#play(root, program);
    } catch (error) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#world.note({ type: "fault", root, text: `its driver failed: ${text}` });
    }
    this.#world.note({ type: "done", root });
  }

  async #play(root: string, program: Program): Promise<void> {
    const budget = program.life === null ? {} : { budget: program.life };
    const agent = await this.#runtime.agent(leadOf(program), { agentId: root, ...budget });
    this.#agents.set(root, agent);
    await this.#tolerant(root, () => agent.start());
    const ends: Promise<void>[] = [];
    for (const [index, { rounds, sent, budget: limits }] of program.turns.entries()) {
      if (sent === "after") await Promise.all(ends);
      const turn = agent.executeTurn(inputOf(rounds), {
        key: `turn-${index}`,
        ifBusy: sent === "supersede" ? sent : "queue",
        ...(limits === null ? {} : { budget: limits }),
      });
      await turn.id;
      ends.push(this.#toItsEnd(root, agent, index, turn));
    }
    await Promise.all(ends);
    await this.#toRest(root, agent);
  }

  async #toItsEnd(root: string, agent: Agent, index: number, turn: ReturnType<Agent["executeTurn"]>): Promise<void> {
    for (let looks = 0; ; looks += 1) {
      const rest = await turn.settled;
      if (rest.status !== "waiting") {
        const { turnId, status, stopReason } = await turn.result;
        return this.#world.note({ type: "told", root, turn: index, turnId, status, stopReason });
      }
      if (looks > 0) await this.#pause(looks);
      await this.#attend(root, agent);
    }
  }

  /** Children in the background end later than the turns, and wake the agent once more. */
  async #toRest(root: string, agent: Agent): Promise<void> {
    for (let looks = 0; ; looks += 1) {
      for (let acting = this.#acting.get(root); acting !== undefined && acting.size > 0; ) await Promise.all(acting);
      if (await this.#isAtRest(root)) return;
      await this.#pause(looks);
      await this.#attend(root, agent);
    }
  }

  async #isAtRest(root: string): Promise<boolean> {
    const { stores } = this.#runtime;
    const tree = await stores.listAgents({ tenant: DEFAULT_TENANT, rootAgentId: root, limit: 1_000 });
    if (tree.some(({ openTurnId, queuedTurnIds, pause }) => openTurnId ?? queuedTurnIds[0] ?? pause)) return false;
    for (const { agentId } of tree) {
      if ((await stores.inbox({ tenant: DEFAULT_TENANT, agentId })).length > 0) return false;
    }
    return true;
  }

  async #pause(looks: number): Promise<void> {
    await this.#world.clock.sleep(Math.min(SLOWEST_LOOK_MS, LOOK_MS * 2 ** Math.min(looks, 8)));
  }

  /** Ends a pause, and decides what is open. */
  async #attend(root: string, agent: Agent): Promise<void> {
    const record = await this.#runtime.stores.readAgent({ tenant: DEFAULT_TENANT, agentId: root });
    if (record?.pause) await this.#tolerant(root, () => agent.resume());
    for (const request of await agent.requests()) await this.#tolerant(root, () => this.#decide(request));
  }

  #decide({ requestId, callId, kind, arguments: given }: AgentRequest): Promise<unknown> {
    if (receivesRejection(callId)) return this.#runtime.decide(requestId, { verdict: "rejected", reason: "no" });
    if (kind !== "approval") return this.#runtime.decide(requestId, { verdict: "answered", result: "so be it" });
    if (fractionOf(`${callId} edited`) >= EDITED) return this.#runtime.decide(requestId, { verdict: "approved" });
    const edited = { ...(given as object), note: "edited" };
    return this.#runtime.decide(requestId, { verdict: "edited", arguments: edited });
  }

  #begin(root: string, does: PlannedAct["does"]): void {
    const acting = this.#acting.get(root) ?? new Set();
    this.#acting.set(root, acting);
    const begun = this.#act(root, does).finally(() => acting.delete(begun));
    acting.add(begun);
  }

  async #act(root: string, does: PlannedAct["does"]): Promise<void> {
    const { clock } = this.#world;
    const agent = this.#agents.get(root) ?? (await this.#runtime.find(root));
    this.#world.note({ type: "act", root, at: clock.now(), does });
    const isDone = await this.#tolerant(root, async () => {
      if (does === "abort") return await agent.abort("the program says so");
      if (does === "abortTurn") return await agent.openTurn()?.abort("the program says so");
      if (does === "restart") {
        // A client and a worker free an agent between two turns only.
        if (this.#runtime.role !== "all") return;
        await agent.shutdown();
        return await agent.start();
      }
      // Rest comes when what is under way has ended; what was held goes on when somebody attends to it.
      void this.#tolerant(root, () => agent.pause(does === "pauseNow" ? { now: true } : {}));
    });
    if (isDone) this.#world.note({ type: "acted", root, at: clock.now(), does });
  }

  async #tolerant(root: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      // A command may be refused because of what has happened just before.
      if (!(error instanceof TroupeError) || error.family === "defect") {
        this.#world.note({ type: "fault", root, text: `a command failed: ${String(error)}` });
      }
      return false;
    }
  }
}
