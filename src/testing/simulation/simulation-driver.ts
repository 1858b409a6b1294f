import { wordsOfThrown } from "../../base/index.ts";
import type { Budget } from "../../budget/index.ts";
import { AgentNotStartedError, TroupeError } from "../../errors/index.ts";
import type { Agent, Runtime, Turn, TurnResult } from "../../runtime/index.ts";
import { type AgentRequest, DEFAULT_TENANT } from "../../state/index.ts";
import { isAtRest } from "./at-rest.ts";
import type { SimulationLog } from "./log.ts";
import type { SimulatedAct, SimulatedProgram } from "./program.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

/** The root agent of every simulated program. */
export const ROOT = "simulated";
const LOOK_MS = 20;
/** Milliseconds after which the driver looks what a turn waits for. */
const LATE_REST_MS = 2_000;
const CLOCK_JUMP_MS = 3_600_000;

export interface DriverOptions {
  readonly agentName: string;
  readonly runtime: Runtime;
  readonly process: SimulatedProcess;
  readonly program: SimulatedProgram;
  readonly log: SimulationLog;
  readonly budget: Budget | undefined;
}

/**
 * Runs a program in one process as a user's process would: sends the turns under their keys, waits for them, decides requests, and
 * performs the actions of others in between.
 */
export class SimulationDriver {
  readonly #options: DriverOptions;
  readonly #acting = new Set<Promise<void>>();
  #agent: Agent | undefined;

  constructor(options: DriverOptions) {
    this.#options = options;
    options.process.onAct = (does) => this.#begin(does);
  }

  /** Resolves with the results of the turns when nothing is left to do. */
  async run(): Promise<TurnResult[]> {
    const { runtime, agentName, program, budget, log } = this.#options;
    const agent = await runtime.agent(agentName, { agentId: ROOT });
    this.#agent = agent;
    // The process that continues finds children and queued turns, too.
    if (log.deaths > 0) await runtime.recover();
    await this.#tolerant(() => agent.start());
    const ends: Promise<TurnResult>[] = [];
    for (const [index, { input, isQueued }] of program.turns.entries()) {
      if (!isQueued) await Promise.all(ends);
      const options = { key: `turn-${index + 1}`, ifBusy: "queue", ...(budget && { budget }) } as const;
      let turn = agent.executeTurn(input, options);
      while (await isShutDown(turn)) {
        // An action is shutting the agent down and starting it again.
        await this.#acted();
        turn = agent.executeTurn(input, options);
      }
      ends.push(this.#toItsEnd(agent, turn));
    }
    const results = await Promise.all(ends);
    for (let looks = 1; ; looks += 1) {
      await this.#acted();
      if (await isAtRest(runtime.stores, ROOT)) return results;
      await this.#options.process.clock.sleep(LOOK_MS);
      if (looks % 25 === 0) await runtime.recover();
      await this.#attend(agent);
    }
  }

  async #toItsEnd(agent: Agent, turn: Turn): Promise<TurnResult> {
    for (;;) {
      const rest = await this.#restOf(turn);
      if (rest === "ended") return await turn.result;
      await this.#attend(agent);
      if (rest === "waiting") await this.#options.process.clock.sleep(LOOK_MS);
    }
  }

  async #restOf(turn: Turn): Promise<"ended" | "waiting" | "busy"> {
    const over = new AbortController();
    const late = this.#options.process.clock.sleep(LATE_REST_MS, over.signal).then(
      () => undefined,
      () => undefined,
    );
    try {
      const rest = await Promise.race([turn.settled, late]);
      if (rest === undefined) return "busy";
      return rest.status === "waiting" ? "waiting" : "ended";
    } finally {
      over.abort();
    }
  }

  async #acted(): Promise<void> {
    while (this.#acting.size > 0) await Promise.all(this.#acting);
  }

  /** Ends a pause, and decides open requests of the whole tree. */
  async #attend(agent: Agent): Promise<void> {
    const { runtime } = this.#options;
    const record = await runtime.stores.readAgent({ tenant: DEFAULT_TENANT, agentId: ROOT });
    if (record?.pause) await this.#tolerant(() => agent.resume());
    for (const request of await runtime.requests({ rootAgentId: ROOT })) await this.#decide(request);
  }

  async #decide({ requestId, callId, name, kind, arguments: given }: AgentRequest): Promise<void> {
    const { log, program, runtime } = this.#options;
    const index = [...log.requests.keys()].indexOf(requestId);
    const number = index < 0 ? log.requests.size : index;
    const decided = log.requests.get(requestId) ?? { callId, tool: name, kind, arguments: given, accepted: [] };
    log.requests.set(requestId, decided);
    const { decisions } = program;
    const planned = decisions[number % Math.max(1, decisions.length)] ?? "approve";
    const approval =
      kind === "approval" ? ({ verdict: "approved" } as const) : ({ verdict: "answered", result: "Yes." } as const);
    const rejection = { verdict: "rejected", reason: "no" } as const;
    const verdicts = planned === "approve" ? [approval] : planned === "reject" ? [rejection] : [approval, rejection];
    // Two people decide at the same time; the second one is refused.
    await Promise.all(
      verdicts.map(async (verdict) => {
        const isAccepted = await this.#tolerant(() => runtime.decide(requestId, verdict));
        if (isAccepted) decided.accepted.push(verdict.verdict);
      }),
    );
  }

  #begin(does: SimulatedAct["does"]): void {
    const begun = this.#act(does).finally(() => this.#acting.delete(begun));
    this.#acting.add(begun);
  }

  async #act(does: SimulatedAct["does"]): Promise<void> {
    const agent = this.#agent;
    if (!agent) return;
    this.#options.log.acts += 1;
    const { clock } = this.#options.process;
    // The clock is never set within a call of the runtime.
    await Promise.resolve();
    if (does === "clock forward") return clock.jump(CLOCK_JUMP_MS);
    if (does === "clock back") return clock.jump(-CLOCK_JUMP_MS);
    await this.#tolerant(async () => {
      if (does === "abort") return await agent.abort("the simulation aborts");
      if (does === "restart") {
        await agent.shutdown();
        return await agent.start();
      }
      // The agent rests once its running calls have ended; `#attend` resumes it.
      void this.#tolerant(() => agent.pause());
    });
  }

  async #tolerant(work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      // A command may be refused because the state has just changed.
      if (!(error instanceof TroupeError) || error.family === "defect") {
        this.#options.log.faults.push(`a command failed: ${wordsOfThrown(error)}`);
      }
      return false;
    }
  }
}

/** Whether a turn was refused because its agent was shut down. */
async function isShutDown(turn: Turn): Promise<boolean> {
  try {
    await turn.id;
    return false;
  } catch (error) {
    if (error instanceof AgentNotStartedError) return true;
    throw error;
  }
}
