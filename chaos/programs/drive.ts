import {
  type Agent,
  AgentNotStartedError,
  type AgentRequest,
  type Runtime,
  TroupeError,
  type Turn,
  type TurnRest,
} from "../../src/index.ts";
import { DEFAULT_TENANT, eventsOf } from "../../src/state/index.ts";
import { isAtRest } from "../../src/testing/simulation/at-rest.ts";
import { fractionOf } from "../../src/testing/simulation/seeded-random.ts";
import { inputOf, leadOf, receivesRejection } from "./cast.ts";
import type { PlannedAct, Program } from "./program.ts";
import type { World } from "./world.ts";

const LOOK_MS = 8;
const SLOWEST_LOOK_MS = 120;
const EDITED = 0.2;
/** Milliseconds after which the driver checks what a turn is waiting for. */
const LATE_REST_MS = 5_000;
/** Most checks in which a follower may be behind the end of its tree. */
const LATE_LOOKS = 200;
const ROWS = 100_000;
/** After this many polls of an unfinished tree, the runtime is asked to recover agents that others left. */
const LOOKS_ALONE = 25;

/** Runs all programs, `width` at a time. A failing program does not stop the others. */
export async function driveAll(driver: Driver, programs: ReadonlyMap<string, Program>, width: number): Promise<void> {
  const left = [...programs];
  const lane = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await driver.run(...next);
  };
  await Promise.all(Array.from({ length: width }, lane));
}

/** A client that follows a tree's events. */
interface Follower {
  readonly stop: AbortController;
  readonly over: Promise<void>;
}

/**
 * Runs programs as a user's process would: sends turns, waits for them, decides requests, ends pauses, and performs planned
 * actions in between. Turns that an earlier process sent are sent again under their keys.
 */
export class Driver {
  readonly #runtime: Runtime;
  readonly #world: World;
  readonly #agents = new Map<string, Agent>();
  readonly #acting = new Map<string, Set<Promise<void>>>();

  constructor(runtime: Runtime, world: World) {
    this.#runtime = runtime;
    this.#world = world;
    world.onAct = (root, act) => this.#begin(root, act);
  }

  /** Resolves when the program's tree is finished, or has failed in an unexpected way. */
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
    const follower = this.#follow(root, program);
    const ends: Promise<void>[] = [];
    for (const [index, { rounds, sent, budget: limits }] of program.turns.entries()) {
      if (sent === "after") await Promise.all(ends);
      const options = { key: `turn-${index}`, ifBusy: sent === "supersede" ? sent : "queue" } as const;
      const send = () =>
        agent.executeTurn(inputOf(rounds), { ...options, ...(limits === null ? {} : { budget: limits }) });
      let turn = send();
      while (await isShutDown(turn)) {
        // Another call is shutting the agent down and starting it again.
        await this.#acted(root);
        turn = send();
      }
      ends.push(this.#toItsEnd(root, agent, index, turn));
    }
    await Promise.all(ends);
    await this.#toRest(root, agent);
    if (program.isReopened) await this.#reopen(root, agent);
    await this.#followed(root, follower);
  }

  /**
   * Logs each event of a tree in the world, starting after the last event that an earlier process logged. Returns
   * `undefined` if the program has no follower.
   */
  #follow(root: string, { isWatched }: Program): Follower | undefined {
    if (!isWatched) return undefined;
    const stop = new AbortController();
    const after = this.#world.seen.get(root);
    const told = async (): Promise<void> => {
      const options = { signal: stop.signal, ...(after === undefined ? {} : { after }) };
      for await (const event of this.#runtime.follow(root, options)) this.#world.noteSeen(root, event);
    };
    return { stop, over: told() };
  }

  /** Stops the follower once it has received the last stored event, or if it is late. */
  async #followed(root: string, follower: Follower | undefined): Promise<void> {
    if (!follower) return;
    let last: string | undefined;
    for (;;) {
      const newest = await this.#lastEvent(root);
      if (newest === last) break;
      last = newest;
      for (let looks = 0; looks < LATE_LOOKS && this.#world.seen.get(root) !== last; looks += 1)
        await this.#pause(looks);
      // A warning about the use of the last commit is written with the next commit.
      await this.#pause(0);
    }
    this.#world.note({ type: "left", root, last: last ?? null });
    follower.stop.abort();
    await follower.over;
  }

  async #lastEvent(root: string): Promise<string | undefined> {
    const rows = await this.#runtime.stores.readTree(DEFAULT_TENANT, root, 0, ROWS);
    const definition = { name: "", hash: "" };
    const source = { agentId: root, parentAgentId: null, rootAgentId: root, sessionId: null, definition };
    const events = rows.flatMap(({ entries, cursor }) =>
      entries.flatMap((entry) => eventsOf(entry, source, cursor, () => "")),
    );
    return events.at(-1)?.cursor ?? undefined;
  }

  /** Shuts the agent down, starts it again, and compares its state. */
  async #reopen(root: string, agent: Agent): Promise<void> {
    // Clients and workers have nothing to shut down.
    if (this.#runtime.role !== "all") return;
    const before = await this.#shown(root, agent);
    await this.#tolerant(root, () => agent.shutdown());
    await this.#tolerant(root, () => agent.start());
    const after = await this.#shown(root, agent);
    for (const [name, text] of Object.entries(after)) {
      if (text === before[name]) continue;
      this.#world.note({
        type: "fault",
        root,
        text: `when it was started again its ${name} was ${text}, not ${before[name]}`,
      });
    }
  }

  async #shown(root: string, agent: Agent): Promise<Readonly<Record<string, string>>> {
    const { updatedAt: _, ...state } = await agent.getState();
    const { turnCount, openTurnId } = agent.state;
    return {
      state: JSON.stringify(state),
      messages: JSON.stringify(await agent.getMessages()),
      trace: JSON.stringify(await agent.getTrace()),
      artifacts: JSON.stringify(await agent.getArtifacts()),
      accounts: JSON.stringify(await this.#runtime.accounts(root)),
      status: JSON.stringify({ turnCount, openTurnId }),
    };
  }

  async #toItsEnd(root: string, agent: Agent, index: number, turn: ReturnType<Agent["executeTurn"]>): Promise<void> {
    for (let looks = 0; ; looks += 1) {
      const rest = await this.#restOf(turn);
      if (rest === undefined) {
        // The turn may be queued behind one that a child's result started. The driver does not follow that turn, which may
        // be paused or have open requests.
        if ((await turn.current()).status === "queued") await this.#attend(root, agent);
        continue;
      }
      if (rest.status !== "waiting") {
        const { turnId, status, stopReason } = await turn.result;
        return this.#world.note({ type: "told", root, turn: index, turnId, status, stopReason });
      }
      if (looks > 0) await this.#pause(looks);
      await this.#attend(root, agent);
    }
  }

  /** The state in which the turn rests; `undefined` if it did not rest for a while. */
  async #restOf(turn: Turn): Promise<TurnRest | undefined> {
    const over = new AbortController();
    const late = this.#world.clock.sleep(LATE_REST_MS, over.signal).then(
      () => undefined,
      () => undefined,
    );
    try {
      return await Promise.race([turn.settled, late]);
    } finally {
      over.abort();
    }
  }

  /** Resolves when no action on the agent is running. */
  async #acted(root: string): Promise<void> {
    for (let acting = this.#acting.get(root); acting !== undefined && acting.size > 0; ) await Promise.all(acting);
  }

  /** Background children end later than the turns and wake the agent once more. */
  async #toRest(root: string, agent: Agent): Promise<void> {
    for (let looks = 0; ; looks += 1) {
      await this.#acted(root);
      if (await isAtRest(this.#runtime.stores, root)) return;
      await this.#pause(looks);
      // This finds work that a dead process left below idle agents.
      if (looks % LOOKS_ALONE === LOOKS_ALONE - 1 && this.#runtime.role === "all") await this.#runtime.recover();
      await this.#attend(root, agent);
    }
  }

  async #pause(looks: number): Promise<void> {
    await this.#world.clock.sleep(Math.min(SLOWEST_LOOK_MS, LOOK_MS * 2 ** Math.min(looks, 8)));
  }

  /** Ends a pause and decides open requests. */
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

  #begin(root: string, act: PlannedAct): void {
    const acting = this.#acting.get(root) ?? new Set();
    this.#acting.set(root, acting);
    const begun = this.#act(root, act).finally(() => acting.delete(begun));
    acting.add(begun);
  }

  async #act(root: string, { at, does }: PlannedAct): Promise<void> {
    const { clock } = this.#world;
    const agent = this.#agents.get(root) ?? (await this.#runtime.find(root));
    this.#world.note({ type: "act", root, at: clock.now(), does });
    const isDone = await this.#tolerant(root, async () => {
      if (does === "abort") return await agent.abort("the program says so");
      if (does === "abortTurn") return await agent.openTurn()?.abort("the program says so");
      if (does === "restart") {
        // Clients and workers release an agent only between two turns.
        if (this.#runtime.role !== "all") return;
        await agent.shutdown();
        return await agent.start();
      }
      if (does === "steer") {
        // It may wait until a pause ends.
        void this.#tolerant(root, () => this.#steer(root, agent, `steer-${at}`));
        return;
      }
      // The agent is idle once its running calls have ended; held calls continue when `#attend` resumes it.
      void this.#tolerant(root, () => agent.pause(does === "pauseNow" ? { now: true } : {}));
    });
    if (isDone) this.#world.note({ type: "acted", root, at: clock.now(), does });
  }

  async #steer(root: string, agent: Agent, key: string): Promise<void> {
    const answer = await agent.steer(inputOf([]), { key });
    const step = answer.status === "delivered" ? answer.step : null;
    this.#world.note({ type: "steered", root, key, turnId: answer.turnId, step });
  }

  async #tolerant(root: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      // A command may be rejected because the state has just changed.
      if (!(error instanceof TroupeError) || error.family === "defect") {
        this.#world.note({ type: "fault", root, text: `a command failed: ${String(error)}` });
      }
      return false;
    }
  }
}

/** Whether a turn was rejected because its agent was shut down. */
async function isShutDown(turn: Turn): Promise<boolean> {
  try {
    await turn.id;
    return false;
  } catch (error) {
    if (error instanceof AgentNotStartedError) return true;
    throw error;
  }
}
