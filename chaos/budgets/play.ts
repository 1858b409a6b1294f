import { grantFaults, refusalFaults } from "./faults-of.ts";
import type { Holder, HolderContext } from "./holder.ts";
import { callOf, endCall, type Lane } from "./lane.ts";
import type { BudgetPlan } from "./plan.ts";
import { PlayedTree } from "./played-tree.ts";
import { CLAIM_MS } from "./reference.ts";

export interface Played {
  readonly faults: readonly string[];
  /** Number of commits and commands. */
  readonly operations: number;
  readonly waits: number;
  readonly refusals: number;
  readonly mostPassed: number;
  readonly mostAtOnce: number;
  readonly reservedAtRest: number;
}

/** More steps than any plan needs; a plan that takes more does not terminate. */
const MOST_STEPS = 3000;

/** Plays one plan on a store and checks all invariants after each step. */
export class Play extends PlayedTree {
  readonly #plan: BudgetPlan;
  #waits = 0;
  #refusals = 0;
  #mostAtOnce = 0;

  constructor(plan: BudgetPlan, place: HolderContext) {
    super(plan, place);
    this.#plan = plan;
  }

  async run(): Promise<Played> {
    for (const [node, { parent, limits }] of this.#plan.nodes.entries()) {
      await this.holders[node]?.open(parent, limits, this.now);
    }
    for (const choice of this.#plan.choices) {
      if (this.faults.length > 0) break;
      await this.#step(choice);
    }
    for (let step = 0; this.faults.length === 0; step += 1) {
      if (step > MOST_STEPS) this.faults.push("it does not terminate");
      if (!(await this.#goOn())) break;
    }
    const rest = this.faults.length === 0 ? await this.atRest() : 0;
    return {
      faults: this.faults,
      operations: this.operations,
      waits: this.#waits,
      refusals: this.#refusals,
      mostPassed: this.reference.mostPassed,
      mostAtOnce: this.#mostAtOnce,
      reservedAtRest: rest,
    };
  }

  /** Chooses one of the possible actions; some are rarer than others. */
  async #step(choice: number): Promise<void> {
    const rare = choice % 24;
    const pick = <T>(things: readonly T[]): T | undefined =>
      things[Math.floor(choice / 24) % Math.max(1, things.length)];
    const free = this.holders.filter(({ node }) => !this.ended.has(node) && !this.gone.has(node));
    const holder = pick(free);
    if (rare === 0 && holder && !this.isOut(holder)) return await this.#end(holder);
    if (rare === 1 && holder) return await this.#pause(holder);
    if (rare === 2 && holder) return await this.#crash(holder);
    if (rare === 3) return await this.#passTime(choice % 48 === 3);
    if (rare === 4 && holder && this.isWaiting(holder.agentId)) return this.#leave(holder);
    const things = this.#things();
    await pick(things)?.();
  }

  /**
   * Does the next remaining action: agents that were told ask again, calls in flight are settled, the next call is
   * requested. Returns `false` if nothing is left.
   */
  async #goOn(): Promise<boolean> {
    const [next] = this.#things();
    if (next) await next();
    else if (this.lanes.some(({ state }) => state === "gone") && (await this.keysInLine()).length > 0) {
      await this.#passTime(true);
      return true;
    }
    const waiting = this.lanes.filter(({ state }) => state === "waiting" || state === "held");
    if (!next && waiting.length > 0) this.faults.push(`${waiting.map(({ name }) => name).join(", ")} waits forever`);
    return next !== undefined;
  }

  #things(): (() => Promise<void>)[] {
    const told = this.holders.filter((holder) => this.told.has(holder.agentId) && !this.isPaused(holder));
    const idle = this.lanes.filter((lane) => lane.state === "idle" && lane.next < lane.calls.length);
    return [
      ...told.map((holder) => () => this.#hear(holder)),
      ...[...this.paused].map((node) => () => this.#resume(node)),
      ...idle.filter(({ holder }) => this.canAsk(holder)).map((lane) => () => this.#ask(lane, [])),
      ...this.lanes.filter(({ state }) => state === "out").map((lane) => () => this.#settle(lane)),
    ];
  }

  async #ask(lane: Lane, acknowledged: readonly string[]): Promise<void> {
    const call = callOf(lane);
    if (!call) return;
    lane.asks += 1;
    const reference = this.reference;
    const wrongRefusal = refusalFaults(call, reference);
    const asked = await lane.holder.ask(call, acknowledged, this.now);
    if ("reservation" in asked) {
      const { tokens, costMicros } = asked.reservation;
      this.faults.push(...grantFaults(call, asked.reservation, reference));
      lane.state = "out";
      lane.reservation = asked.reservation;
      const tooOften = reference.grant(call, { tokens, micros: costMicros }, await this.keysInLine(), this.now);
      for (const key of tooOften) this.faults.push(`${call.key} passed ${key} once too often`);
      this.#mostAtOnce = Math.max(this.#mostAtOnce, reference.out.size);
    } else if (asked.reason === "mustWait") {
      this.faults.push(...wrongRefusal.mustWait);
      lane.state = "waiting";
      this.#waits += 1;
      this.faults.push(...reference.wait(call, await this.keysInLine(), this.now));
    } else {
      this.faults.push(...wrongRefusal.budget);
      this.#refusals += 1;
      reference.line.delete(call.key);
      endCall(lane);
    }
    await this.look(asked.posted);
  }

  async #settle(lane: Lane, isLost = false): Promise<void> {
    const { reservation, holder } = lane;
    const fate = isLost ? "unknown" : lane.calls[lane.next]?.fate;
    if (!reservation || !fate) return;
    const part = fate === "unknown" ? 1 : fate === "more" ? 1.5 : fate.share;
    const tokens = Math.floor(reservation.tokens * part);
    const micros = Math.floor(reservation.costMicros * part);
    const key = callOf(lane)?.key ?? "";
    this.reference.settle(key, { tokens, micros });
    endCall(lane);
    await this.look(await holder.settle(reservation, tokens, micros, fate === "unknown", this.now));
  }

  /** Asks again for all waiting calls of an agent that was told of free budget. */
  async #hear(holder: Holder): Promise<void> {
    let acknowledged = (await holder.inbox()).map(({ key }) => key);
    this.told.delete(holder.agentId);
    const waiting = this.lanes.filter((lane) => lane.holder === holder && lane.state === "waiting");
    for (const [index, lane] of waiting.entries()) {
      this.isHearing = index < waiting.length - 1;
      await this.#ask(lane, acknowledged);
      acknowledged = [];
    }
    if (acknowledged.length > 0) await this.look(await holder.acknowledge(acknowledged, this.now));
  }

  async #end(holder: Holder): Promise<void> {
    this.ended.add(holder.node);
    for (const lane of this.lanes.filter((one) => one.holder === holder)) {
      this.reference.line.delete(callOf(lane)?.key ?? "");
      Object.assign(lane, { state: "idle", next: lane.calls.length });
    }
    await this.look(await holder.end(this.now));
  }

  async #pause(holder: Holder): Promise<void> {
    if (this.isPaused(holder)) return;
    this.paused.add(holder.node);
    for (const lane of this.lanes) {
      if (!this.isPaused(lane.holder) || (lane.state !== "waiting" && lane.state !== "gone")) continue;
      this.reference.line.delete(callOf(lane)?.key ?? "");
      if (lane.state === "waiting") lane.state = "held";
    }
    await this.look(await holder.pause(this.now));
  }

  async #resume(node: number): Promise<void> {
    const holder = this.holders[node];
    if (!holder) return;
    this.paused.delete(node);
    await holder.resume(this.now);
    this.operations += 1;
    for (const lane of this.lanes) {
      if (lane.state === "held" && !this.isPaused(lane.holder)) await this.#ask(lane, []);
    }
  }

  /** Enough time that budget is no longer kept for agents that were told earlier. Alarms may be late. */
  async #passTime(areAlarmsHeard: boolean): Promise<void> {
    this.now += CLAIM_MS + 2;
    const [top] = this.holders;
    if (!areAlarmsHeard || !top) return;
    const posted = await top.hearAlarms(this.now);
    const line = await this.keysInLine();
    for (const key of this.reference.forgetLate(line, this.now)) this.faults.push(`${key} keeps budget permanently`);
    for (const lane of this.lanes) {
      const key = lane.state === "gone" ? callOf(lane)?.key : undefined;
      if (key !== undefined && !line.includes(key)) this.reference.forget(key);
    }
    await this.look(posted);
  }

  /** The process of a waiting call dies permanently: the call will be told of free budget and never asks again. */
  #leave(holder: Holder): void {
    this.gone.add(holder.node);
    this.told.delete(holder.agentId);
    for (const lane of this.lanes) {
      if (lane.holder !== holder || lane.state === "out") continue;
      if (lane.state === "waiting") lane.state = "gone";
      else Object.assign(lane, { state: "idle", next: lane.calls.length });
    }
  }

  /** The owner dies: the next owner settles calls in flight in full; waiting calls keep waiting. */
  async #crash(holder: Holder): Promise<void> {
    await holder.takeUp(this.now);
    for (const lane of this.lanes) if (lane.holder === holder && lane.state === "out") await this.#settle(lane, true);
  }
}
