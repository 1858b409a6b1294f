import type { Stores } from "../../src/stores/index.ts";
import { faultsOf, grantFaults, refusalFaults } from "./faults-of.ts";
import { Holder, type Place, TENANT } from "./holder.ts";
import { callOf, endCall, type Lane, lanesOf } from "./lane.ts";
import type { BudgetPlan } from "./plan.ts";
import { CLAIM_MS, Reference } from "./reference.ts";

export interface Played {
  readonly faults: readonly string[];
  /** Commits and commands. */
  readonly operations: number;
  readonly waits: number;
  readonly refusals: number;
  readonly mostPassed: number;
  readonly mostAtOnce: number;
  readonly reservedAtRest: number;
}

/** More steps than any plan can need: it does not come to its end. */
const MOST_STEPS = 3000;

/** Plays one plan on a store, and looks after each step whether all that must hold holds. */
export class Play {
  readonly #plan: BudgetPlan;
  readonly #stores: Stores;
  readonly #root: string;
  readonly #holders: Holder[];
  readonly #lanes: Lane[];
  readonly #reference: Reference;
  readonly #told = new Set<string>();
  readonly #paused = new Set<number>();
  readonly #ended = new Set<number>();
  readonly #faults: string[] = [];
  #now = 1_000_000;
  /** Whether an agent that was told has asked for some of its calls and not yet for all. */
  #isHearing = false;
  #operations = 0;
  #waits = 0;
  #refusals = 0;
  #mostAtOnce = 0;

  constructor(plan: BudgetPlan, place: Place) {
    this.#plan = plan;
    this.#stores = place.stores;
    this.#root = place.rootAgentId;
    this.#reference = new Reference(plan.nodes);
    this.#holders = plan.nodes.map((_, node) => new Holder(place, node, plan.lanes[node]?.length === 1));
    this.#lanes = this.#holders.flatMap((holder, node) => lanesOf(holder, plan.lanes[node] ?? []));
  }

  async run(): Promise<Played> {
    for (const [node, { parent, limits }] of this.#plan.nodes.entries()) {
      await this.#holders[node]?.open(parent, limits, this.#now);
    }
    for (const choice of this.#plan.choices) {
      if (this.#faults.length > 0) break;
      await this.#step(choice);
    }
    for (let step = 0; this.#faults.length === 0; step += 1) {
      if (step > MOST_STEPS) this.#faults.push("it does not come to an end");
      if (!(await this.#goOn())) break;
    }
    const rest = this.#faults.length === 0 ? await this.#atRest() : 0;
    return {
      faults: this.#faults,
      operations: this.#operations,
      waits: this.#waits,
      refusals: this.#refusals,
      mostPassed: this.#reference.mostPassed,
      mostAtOnce: this.#mostAtOnce,
      reservedAtRest: rest,
    };
  }

  /** One of the things that can happen now; some are rarer than others. */
  async #step(choice: number): Promise<void> {
    const rare = choice % 24;
    const pick = <T>(things: readonly T[]): T | undefined =>
      things[Math.floor(choice / 24) % Math.max(1, things.length)];
    const free = this.#holders.filter(({ node }) => !this.#ended.has(node));
    const holder = pick(free);
    if (rare === 0 && holder && !this.#isOut(holder)) return await this.#end(holder);
    if (rare === 1 && holder) return await this.#pause(holder);
    if (rare === 2 && holder) return await this.#crash(holder);
    if (rare === 3) {
      this.#now += CLAIM_MS + 1;
      return;
    }
    const things = this.#things();
    await pick(things)?.();
  }

  /** What is left happens: those who were told ask, what is out is settled, the next is asked. False: nothing is left. */
  async #goOn(): Promise<boolean> {
    const [next] = this.#things();
    if (next) await next();
    const waiting = this.#lanes.filter(({ state }) => state === "waiting" || state === "held");
    if (!next && waiting.length > 0) this.#faults.push(`${waiting.map(({ name }) => name).join(", ")} waits for ever`);
    return next !== undefined;
  }

  #things(): (() => Promise<void>)[] {
    const told = this.#holders.filter((holder) => this.#told.has(holder.agentId) && !this.#isPaused(holder));
    const idle = this.#lanes.filter((lane) => lane.state === "idle" && lane.next < lane.calls.length);
    return [
      ...told.map((holder) => () => this.#hear(holder)),
      ...[...this.#paused].map((node) => () => this.#resume(node)),
      ...idle.filter(({ holder }) => this.#canAsk(holder)).map((lane) => () => this.#ask(lane, [])),
      ...this.#lanes.filter(({ state }) => state === "out").map((lane) => () => this.#settle(lane)),
    ];
  }

  async #ask(lane: Lane, acknowledged: readonly string[]): Promise<void> {
    const call = callOf(lane);
    if (!call) return;
    lane.asks += 1;
    const reference = this.#reference;
    const wrongRefusal = refusalFaults(call, reference);
    const asked = await lane.holder.ask(call, acknowledged, this.#now);
    if ("reservation" in asked) {
      const { tokens, costMicros } = asked.reservation;
      this.#faults.push(...grantFaults(call, asked.reservation, reference));
      lane.state = "out";
      lane.reservation = asked.reservation;
      const tooOften = reference.grant(call, { tokens, micros: costMicros }, await this.#keysInLine());
      for (const key of tooOften) this.#faults.push(`${call.key} passed ${key} once too often`);
      this.#mostAtOnce = Math.max(this.#mostAtOnce, reference.out.size);
    } else if (asked.reason === "mustWait") {
      this.#faults.push(...wrongRefusal.mustWait);
      lane.state = "waiting";
      this.#waits += 1;
      this.#faults.push(...reference.wait(call, await this.#keysInLine(), this.#now));
    } else {
      this.#faults.push(...wrongRefusal.budget);
      this.#refusals += 1;
      reference.line.delete(call.key);
      endCall(lane);
    }
    await this.#look(asked.posted);
  }

  async #settle(lane: Lane, isLost = false): Promise<void> {
    const { reservation, holder } = lane;
    const fate = isLost ? "unknown" : lane.calls[lane.next]?.fate;
    if (!reservation || !fate) return;
    const part = fate === "unknown" ? 1 : fate === "more" ? 1.5 : fate.share;
    const tokens = Math.floor(reservation.tokens * part);
    const micros = Math.floor(reservation.costMicros * part);
    const key = callOf(lane)?.key ?? "";
    this.#reference.settle(key, { tokens, micros });
    endCall(lane);
    await this.#look(await holder.settle(reservation, tokens, micros, fate === "unknown", this.#now));
  }

  /** An agent that was told: all its calls that wait are asked again. */
  async #hear(holder: Holder): Promise<void> {
    let acknowledged = (await holder.inbox()).map(({ key }) => key);
    this.#told.delete(holder.agentId);
    const waiting = this.#lanes.filter((lane) => lane.holder === holder && lane.state === "waiting");
    for (const [index, lane] of waiting.entries()) {
      this.#isHearing = index < waiting.length - 1;
      await this.#ask(lane, acknowledged);
      acknowledged = [];
    }
    if (acknowledged.length > 0) await this.#look(await holder.acknowledge(acknowledged, this.#now));
  }

  async #end(holder: Holder): Promise<void> {
    this.#ended.add(holder.node);
    for (const lane of this.#lanes.filter((one) => one.holder === holder)) {
      this.#reference.line.delete(callOf(lane)?.key ?? "");
      Object.assign(lane, { state: "idle", next: lane.calls.length });
    }
    await this.#look(await holder.end(this.#now));
  }

  async #pause(holder: Holder): Promise<void> {
    if (this.#isPaused(holder)) return;
    this.#paused.add(holder.node);
    for (const lane of this.#lanes) {
      if (lane.state !== "waiting" || !this.#isPaused(lane.holder)) continue;
      this.#reference.line.delete(callOf(lane)?.key ?? "");
      lane.state = "held";
    }
    await this.#look(await holder.pause(this.#now));
  }

  async #resume(node: number): Promise<void> {
    const holder = this.#holders[node];
    if (!holder) return;
    this.#paused.delete(node);
    await holder.resume(this.#now);
    this.#operations += 1;
    for (const lane of this.#lanes) {
      if (lane.state === "held" && !this.#isPaused(lane.holder)) await this.#ask(lane, []);
    }
  }

  /** Its owner is lost: what was out is settled in full by the next one; what waits goes on waiting. */
  async #crash(holder: Holder): Promise<void> {
    await holder.takeUp(this.#now);
    for (const lane of this.#lanes) if (lane.holder === holder && lane.state === "out") await this.#settle(lane, true);
  }

  async #look(posted: readonly string[]): Promise<void> {
    this.#operations += 1;
    this.#now += 1;
    for (const agentId of posted) {
      const holder = this.#holders.find((one) => one.agentId === agentId);
      const isTold = (await holder?.inbox())?.some(({ kind }) => kind === "budget.freed") ?? false;
      if (!isTold) continue;
      this.#told.add(agentId);
      for (const { call } of this.#reference.line.values()) {
        if (this.#holders[call.holder] === holder) this.#reference.tell(call.key, this.#now);
      }
    }
    const accounts = await this.#stores.accounts(TENANT, this.#root);
    const isQuiet = !this.#isHearing && [...this.#told].every((agentId) => !this.#isWaiting(agentId));
    this.#faults.push(...faultsOf(accounts, this.#reference, this.#holders, { isQuiet, now: this.#now }));
  }

  #isWaiting(agentId: string): boolean {
    return this.#lanes.some(({ holder, state }) => holder.agentId === agentId && state === "waiting");
  }

  async #keysInLine(): Promise<string[]> {
    const [top] = await this.#stores.accounts(TENANT, this.#root);
    return top?.waiters.map(({ ask }) => ask.key) ?? [];
  }

  async #atRest(): Promise<number> {
    const accounts = await this.#stores.accounts(TENANT, this.#root);
    const left = accounts.flatMap(({ id, waiters }) => (waiters.length > 0 ? [`${id}: somebody waits at rest`] : []));
    this.#faults.push(...left);
    return accounts.reduce((sum, { reserved }) => sum + reserved.tokens + reserved.costMicros, 0);
  }

  #isOut(holder: Holder): boolean {
    return this.#lanes.some((lane) => lane.holder === holder && lane.state === "out");
  }

  #isPaused(holder: Holder): boolean {
    return this.#reference.chain(holder.node).some((node) => this.#paused.has(node));
  }

  #canAsk(holder: Holder): boolean {
    return !this.#ended.has(holder.node) && !this.#isPaused(holder);
  }
}
