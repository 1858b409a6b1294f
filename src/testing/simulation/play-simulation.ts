import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentDefinition, collectDefinitions, definitionRule } from "../../agents/index.ts";
import { type Clock, describeValue, holdsFromNow, renderPath, toJson, wordsOfThrown } from "../../base/index.ts";
import type { Budget } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { createRuntime, type TurnResult } from "../../runtime/index.ts";
import { memoryStores, type Stores } from "../../stores/index.ts";
import type { Tool } from "../../tools/index.ts";
import { createFakeClock, type FakeClock } from "../fake-clock.ts";
import { type TreeEvidence, treeIn } from "./evidence.ts";
import { gated } from "./gate.ts";
import { Life } from "./life.ts";
import { emptyLog, type SimulationLog } from "./log.ts";
import { passTime } from "./pass-time.ts";
import type { SimulatedDeath, SimulatedProgram } from "./program.ts";
import { Reach } from "./reach.ts";
import { seededRandom } from "./seeded-random.ts";
import { SimulatedProcess } from "./simulated-process.ts";
import { ROOT, SimulationDriver } from "./simulation-driver.ts";

const LEASE_MS = 10_000;
/** Least time without progress after which nothing is expected to happen, in milliseconds of the clock. */
const SHORTEST_STUCK_MS = 180_000;
const never = Promise.withResolvers<never>().promise;

/** What the world of a simulation is made with. */
export interface SimulatedSurroundings {
  /**
   * Reports that something happened outside, at the moment at which it happens: `effect("refund", { order })`. The call of the tool that
   * caused it is found by itself. Reports with equal names and details are the same effect; leave values out of `details` that differ each
   * time, such as generated ids.
   */
  readonly effect: (name: string, details?: unknown) => void;
  /** The clock of the simulation: waiting on it costs no time, and a process that dies stops waiting. */
  readonly clock: Clock;
}

/** An agent whose tools act on a world that the test can see. */
export interface SimulationCase<World> {
  /** Makes the world, once for each program. It outlives the simulated processes, as a database does. */
  readonly world: (surroundings: SimulatedSurroundings) => World;
  /** Defines the agent, once for each simulated process: what its code keeps in memory is lost when the process dies. */
  readonly agent: (world: World) => AgentDefinition | Promise<AgentDefinition>;
}

export interface PlayOptions<World> {
  readonly target: SimulationCase<World>;
  readonly on: "memory" | "sqlite";
  readonly budget: Budget | undefined;
}

/** A program that was played. */
export interface PlayedSimulation<World> {
  readonly program: SimulatedProgram;
  readonly log: SimulationLog;
  readonly world: World;
  readonly definition: AgentDefinition;
  /** `undefined` if the program did not end. */
  readonly results: readonly TurnResult[] | undefined;
  readonly tree: TreeEvidence;
  readonly stores: Stores;
}

/**
 * Plays a program in simulated processes, one after the other, on one fake clock, and passes the outcome to `read` while its stores are
 * open. The same program is always played in the same way.
 */
export async function playSimulation<World, Value>(
  program: SimulatedProgram,
  options: PlayOptions<World>,
  read: (played: PlayedSimulation<World>) => Promise<Value>,
): Promise<Value> {
  const folder = options.on === "sqlite" ? mkdtempSync(join(tmpdir(), "troupe-simulation-")) : undefined;
  const open = await opener(folder);
  const endHolds = holdsFromNow();
  const plain = open();
  try {
    return await read(await new Play(program, options, { plain, open }).run());
  } finally {
    // Dead processes never let go of what they hold.
    endHolds();
    await plain.close();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

async function opener(folder: string | undefined): Promise<() => Stores> {
  if (folder === undefined) {
    const stores = memoryStores();
    return () => stores;
  }
  const { sqliteStores } = await import("../../stores/sqlite.ts");
  return () => sqliteStores(join(folder, "simulation.db"));
}

interface PlayStores {
  /** The stores for the test; in memory also for the processes. */
  readonly plain: Stores;
  readonly open: () => Stores;
}

/** One play of a program. Owns its log, its world and the process that is running. */
class Play<World> {
  readonly #program: SimulatedProgram;
  readonly #options: PlayOptions<World>;
  readonly #stores: PlayStores;
  readonly #log = emptyLog();
  readonly #world: World;
  #process: SimulatedProcess | undefined;
  #clock: FakeClock = createFakeClock();
  #definition: AgentDefinition | undefined;
  #results: readonly TurnResult[] | undefined;

  constructor(program: SimulatedProgram, options: PlayOptions<World>, stores: PlayStores) {
    this.#program = program;
    this.#options = options;
    this.#stores = stores;
    this.#world = options.target.world({
      effect: (name, details) => this.#effect(name, details),
      clock: this.#worldClock(),
    });
  }

  async run(): Promise<PlayedSimulation<World>> {
    const deaths = [...this.#program.deaths];
    for (let death = deaths.shift(); !(await this.#live(death)); death = deaths.shift()) {
      // The leases of the dead process have expired when the next one starts.
      const clock = this.#clock;
      this.#clock = createFakeClock(clock.elapsed() + LEASE_MS + 1);
      this.#clock.jump(clock.now() - clock.elapsed());
    }
    const { plain: stores } = this.#stores;
    if (!this.#definition) throw new Error("no process was started");
    return {
      program: this.#program,
      log: this.#log,
      world: this.#world,
      definition: this.#definition,
      results: this.#results,
      tree: await treeIn(stores, ROOT),
      stores,
    };
  }

  /** Runs one process until nothing is left to do, or nothing happens any more. Returns false if it dies first. */
  async #live(death: SimulatedDeath | undefined): Promise<boolean> {
    const { target, budget } = this.#options;
    const [life, log, clock, program] = [new Life(), this.#log, this.#clock, this.#program];
    const stores = this.#stores.open();
    const onDeath = (): void => reach.end();
    const process = new SimulatedProcess({ program, log, clock, life, death, onDeath });
    const reach = new Reach(withMoments(stores, process));
    this.#process = process;
    const definition = await target.agent(gated(this.#world, () => life.isOver));
    definitionRule(definition, "simulate(): the value that agent() returns");
    this.#definition = definition;
    const cast = process.castOf(definition);
    const random = seededRandom(log.deaths);
    const queues = functionTools(cast).flatMap(({ queue }) =>
      queue === undefined ? [] : [[queue, { concurrency: 16 }]],
    );
    const runtime = await createRuntime({
      agents: [cast],
      stores: reach.stores,
      clock,
      random: () => random.next(),
      leaseMs: LEASE_MS,
      work: { queues: Object.fromEntries(queues) },
    });
    const driver = new SimulationDriver({ agentName: cast.name, runtime, process, program, log, budget });
    const ran = driver.run().then(
      (results) => (this.#results = results),
      (error: unknown) => void (life.isOver || log.faults.push(`the run failed: ${wordsOfThrown(error)}`)),
    );
    const longest = functionTools(cast).map(({ timeoutMs }) => 2 * timeoutMs);
    const moved = { clock, world: process, reach, stuckMs: Math.max(SHORTEST_STUCK_MS, ...longest) };
    await passTime(moved, ran);
    if (life.isOver) {
      if (stores !== this.#stores.plain) await stores.close();
      return false;
    }
    await passTime(moved, runtime.shutdown());
    return true;
  }

  /** A wrong report would only fail the tool, which may catch the error. */
  #effect(name: string, details: unknown = null): void {
    const copy = toJson(details);
    if (typeof name === "string" && name !== "" && copy.ok) return this.#process?.effect(name, copy.json);
    const wrong = copy.ok
      ? `the name is ${describeValue(name)}; expected a text that names what happened`
      : `details at ${renderPath(copy.issue.path)}: ${copy.issue.message}; expected plain JSON`;
    this.#log.faults.push(`effect(): ${wrong}`);
    throw new InvalidInputError(`effect(): ${wrong}`);
  }

  /** The clock of the running process. */
  #worldClock(): Clock {
    return {
      now: () => this.#clock.now(),
      elapsed: () => this.#clock.elapsed(),
      setTimer: (at, callback) => this.#clock.setTimer(at, callback),
      setDelay: (ms, callback) => this.#clock.setDelay(ms, callback),
      sleep: (ms, signal) => this.#clock.sleep(ms, signal),
    };
  }
}

/** Stores whose commits are moments at which the process can die. */
function withMoments(stores: Stores, process: SimulatedProcess): Stores {
  return new Proxy(stores, {
    get: (target, name: keyof Stores) => {
      const member: unknown = target[name];
      if (typeof member !== "function") return member;
      if (name !== "commit") return member.bind(target) as unknown;
      return async (...given: Parameters<Stores["commit"]>) => {
        process.pass("before commit");
        if (process.isOver) return await never;
        const outcomes = await target.commit(...given);
        process.pass("after commit");
        return outcomes;
      };
    },
  });
}

function functionTools(definition: AgentDefinition): Tool<never>[] {
  const tools = [...collectDefinitions([definition]).values()].flatMap((agent) => agent.tools.tools);
  return tools.filter((tool) => tool.kind === "function");
}
