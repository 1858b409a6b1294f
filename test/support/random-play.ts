import { armFaultPoints, type FaultAction } from "../../src/base/index.ts";
import { type Agent, type AgentRequest, type Runtime, TroupeError, type Turn } from "../../src/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { loopTurns } from "./journal-probes.ts";
import { castOf } from "./random-cast.ts";
import { type Action, isFaultPoint, type TurnPlan } from "./random-turns.ts";
import { count, createLife, type Life, RandomWorld, type Tally } from "./random-world.ts";
import type { Stage, StagedOptions, StagedProcess } from "./runtimes.ts";
import { faultsOfTree } from "./tree-faults.ts";

const quietTurns = 6;
const mostPolls = 400;

interface PlayOptions {
  readonly agentId: string;
  readonly tally: Tally;
  readonly through?: StagedOptions["through"];
  readonly onInspect?: StagedOptions["onInspect"];
  /** Watches each opened process; returns a function that ends the watch. */
  readonly watch?: (runtime: Runtime) => () => Promise<unknown>;
  /** Called when code of the case begins. */
  readonly onCode?: (place: string) => void;
}

interface Process {
  readonly staged: StagedProcess;
  readonly life: Life;
  readonly agent: Agent;
  readonly endWatch: () => Promise<unknown>;
}

/**
 * Runs one plan on the stage: opens processes, starts turns, decides requests, ends pauses, advances the clock, and acquires the
 * agent elsewhere when its process was killed. Returns the faults in the model's prompts and in the journal.
 */
export class RandomPlay {
  readonly #stage: Stage;
  readonly #look: Stores;
  readonly #plan: TurnPlan;
  readonly #agentId: string;
  readonly #options: PlayOptions;
  readonly #world: RandomWorld;
  readonly #underWay = new Set<Promise<unknown>>();
  #process: Process | undefined;
  #decided = 0;
  #turns = 0;
  #isEnding = false;

  constructor(stage: Stage, look: Stores, plan: TurnPlan, options: PlayOptions) {
    const { agentId, tally, onCode } = options;
    this.#stage = stage;
    this.#look = look;
    this.#plan = plan;
    this.#agentId = agentId;
    this.#options = options;
    this.#world = new RandomWorld(plan, tally, (action) => this.#act(action), onCode);
  }

  async play(): Promise<readonly string[]> {
    const { tally, faults } = this.#world;
    tally.cases += 1;
    const disarm = armFaultPoints(
      this.#plan.strikes.flatMap(({ place, hit, action }) =>
        isFaultPoint(place) ? [{ name: place, hit, action: (() => this.#act(action)) satisfies FaultAction }] : [],
      ),
    );
    try {
      for (const { input, before } of this.#plan.turns) {
        const { agent } = await this.#living();
        if (before === "clear") await this.#try(() => agent.clear());
        if (before === "reset") await this.#try(() => agent.resetConversation());
        const isHeld = before !== "nothing" && before !== "clear" && before !== "reset";
        if (isHeld) await this.#try(() => agent.pause());
        const content = { text: "go", null: null, parts: [{ type: "text" as const, text: "go" }] }[input];
        this.#keep(agent.executeTurn(content, { ifBusy: "queue" }));
        if (isHeld) {
          await loopTurns(3);
          this.#act(before);
        }
        await this.#drive();
        if (faults.length > 0) break;
      }
      // The agent is not stuck after any of this: it accepts one more turn.
      if (faults.length === 0) {
        const { agent } = await this.#living();
        this.#keep(agent.executeTurn("go", { ifBusy: "queue" }));
        await this.#drive();
      }
    } finally {
      disarm();
      await this.#end();
    }
    if (faults.length === 0) faults.push(...(await faultsOfTree(this.#look, this.#agentId, tally)));
    return faults;
  }

  /** Decides, resumes and advances the clock until the agent is at rest without open requests. */
  async #drive(): Promise<void> {
    let seen = -1;
    for (let poll = 0; poll < mostPolls; poll += 1) {
      await loopTurns(quietTurns);
      const { staged, agent } = await this.#living();
      if (this.#world.faults.length > 0) return;
      if (this.#world.activity !== seen) {
        seen = this.#world.activity;
        continue;
      }
      if (agent.state.status === "paused") await this.#try(() => agent.resume());
      else if (await this.#isOver()) return;
      await this.#decideAll(staged.runtime, agent);
      this.#stage.clock.advance(100);
    }
    const tree = await this.#look.listAgents({ tenant: "default", rootAgentId: this.#agentId });
    const open = tree.map(({ agentId, status, openTurnId, queuedTurnIds, pause }) =>
      JSON.stringify({ agentId, status, openTurnId, queuedTurnIds, pause }),
    );
    this.#world.faults.push(`never at rest: ${open.join()}`);
  }

  async #isOver(): Promise<boolean> {
    if (this.#underWay.size > 0) return false;
    const record = await this.#look.readAgent({ tenant: "default", agentId: this.#agentId });
    if (record?.openTurnId !== null || record.queuedTurnIds.length > 0 || record.pause !== null) return false;
    // Children whose parent no longer awaits them are notified, and end a little later.
    const below = await this.#look.listAgents({ tenant: "default", rootAgentId: this.#agentId });
    return below.every(({ openTurnId }) => openTurnId === null);
  }

  async #decideAll(runtime: Runtime, agent: Agent): Promise<void> {
    const open = { tenant: "default", rootAgentId: this.#agentId, status: "open" } as const;
    for (const request of await this.#look.requests(open)) {
      const decision = this.#plan.decisions[this.#decided] ?? "yes";
      this.#decided += 1;
      const { requestId, kind } = request;
      if (decision === "wait" && request.expiresAt !== null) continue;
      if (decision === "no") await this.#try(() => runtime.decide(requestId, { verdict: "rejected", reason: "no" }));
      else if (kind === "auth")
        await this.#try(() => agent.resume({ auth: { actorId: "mia", credentials: { token: "t" } } }));
      else await this.#try(() => this.#agree(runtime, request, decision === "edit"));
    }
  }

  #agree(runtime: Runtime, { requestId, kind }: AgentRequest, edits: boolean): Promise<unknown> {
    if (kind !== "approval") return runtime.decide(requestId, { verdict: "answered", result: { said: "yes" } });
    if (!edits) return runtime.decide(requestId, { verdict: "approved" });
    return runtime.decide(requestId, { verdict: "edited", arguments: { does: "succeed", loops: 0 } });
  }

  /** Disturbs the case. It must not wait, because the disturbed code continues concurrently. */
  #act(action: Action): void {
    const process = this.#process;
    if (!process || process.life.isOver || this.#isEnding) return;
    const { agent } = process;
    count(this.#world.tally.acted, action);
    switch (action) {
      case "kill":
        process.staged.kill();
        process.life.end();
        // Its later reads have no effect.
        void process.endWatch();
        return;
      case "abort":
        return this.#begin(() => agent.abort("the case says so"));
      case "abortTurn":
        return this.#begin(async () => await agent.openTurn()?.abort());
      case "pause":
        return this.#begin(() => agent.pause());
      case "pauseNow":
        return this.#begin(() => agent.pause({ now: true }));
      case "restart":
        return this.#begin(async () => {
          await agent.shutdown();
          await agent.start();
        });
      case "queue":
      case "supersede":
      case "steer":
        if (this.#turns < 5) this.#keep(agent.executeTurn("and this", { ifBusy: action }));
        return;
      default:
        action satisfies never;
    }
  }

  #keep(turn: Turn): void {
    this.#turns += 1;
    this.#begin(() => turn.id);
  }

  #begin(work: () => Promise<unknown>): void {
    const begun = this.#try(work).finally(() => this.#underWay.delete(begun));
    this.#underWay.add(begun);
  }

  /**
   * A command may be refused because of an event just before; it must not fail otherwise. A process that is
   * killed meanwhile does not answer.
   */
  async #try(work: () => Promise<unknown>): Promise<void> {
    const life = this.#process?.life;
    try {
      await Promise.race([work(), life?.over]);
    } catch (error) {
      if (error instanceof TroupeError && error.family !== "defect") return;
      if (!life?.isOver) this.#world.faults.push(`a command failed: ${String(error)}`);
    }
  }

  /** The agent in a living process. */
  async #living(): Promise<Process> {
    const known = this.#process;
    if (known && !known.life.isOver) return known;
    if (known) {
      await loopTurns(5);
      this.#underWay.clear();
      this.#stage.expireLeases();
    }
    const life = createLife();
    const staged = await this.#stage.openProcess({
      agents: castOf(this.#world, life),
      through: this.#options.through,
      onInspect: this.#options.onInspect,
      random: () => 0.5,
      resolveAuth: async ({ actorId }) => {
        await loopTurns(this.#decided % 4);
        return this.#decided % 2 === 0 ? undefined : { actorId, credentials: { token: "t" } };
      },
    });
    const endWatch = this.#options.watch?.(staged.runtime) ?? (() => Promise.resolve());
    const agent = await staged.runtime.agent("lead", { agentId: this.#agentId });
    this.#process = { staged, life, agent, endWatch };
    await this.#try(() => agent.start());
    return life.isOver ? await this.#living() : this.#process;
  }

  async #end(): Promise<void> {
    this.#isEnding = true;
    if (!this.#process || this.#process.life.isOver) return;
    await this.#process.endWatch();
    await this.#process.staged.runtime.shutdown();
  }
}
