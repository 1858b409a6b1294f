import type { Stores } from "../../src/stores/index.ts";
import { faultsOf } from "./faults-of.ts";
import { Holder, type HolderContext, TENANT } from "./holder.ts";
import { callOf, type Lane, lanesOf } from "./lane.ts";
import type { BudgetPlan } from "./plan.ts";
import { Reference } from "./reference.ts";

/** The tree of a plan: the holders of its accounts, their states, and the faults found. */
export class PlayedTree {
  protected readonly stores: Stores;
  protected readonly root: string;
  protected readonly holders: readonly Holder[];
  protected readonly lanes: readonly Lane[];
  protected readonly reference: Reference;
  /** Agents that were told of free budget and have not asked again yet. */
  protected readonly told = new Set<string>();
  protected readonly paused = new Set<number>();
  protected readonly ended = new Set<number>();
  /** Nodes whose process died. Their calls never ask again. */
  protected readonly gone = new Set<number>();
  protected readonly faults: string[] = [];
  protected now = 1_000_000;
  /** Whether an agent that was told has asked again for some of its calls but not for all. */
  protected isHearing = false;
  protected operations = 0;

  constructor(plan: BudgetPlan, place: HolderContext) {
    this.stores = place.stores;
    this.root = place.rootAgentId;
    this.reference = new Reference(plan.nodes);
    this.holders = plan.nodes.map((_, node) => new Holder(place, node, plan.lanes[node]?.length === 1));
    this.lanes = this.holders.flatMap((holder, node) => lanesOf(holder, plan.lanes[node] ?? []));
  }

  protected async look(posted: readonly string[]): Promise<void> {
    this.operations += 1;
    this.now += 1;
    for (const agentId of posted) {
      const holder = this.holders.find((one) => one.agentId === agentId);
      const isTold = (await holder?.inbox())?.some(({ kind }) => kind === "budget.freed") ?? false;
      if (!isTold || !holder) continue;
      if (!this.gone.has(holder.node)) this.told.add(agentId);
      for (const { call } of this.reference.line.values()) {
        if (this.holders[call.holder] === holder) this.reference.tell(call.key, this.now);
      }
    }
    const accounts = await this.stores.accounts(TENANT, this.root);
    const line = await this.keysInLine();
    const isAsked = [...this.told].every((agentId) => !this.isWaiting(agentId));
    const isQuiet = !this.isHearing && isAsked && (this.gone.size === 0 || !this.isAnyLost(line));
    this.faults.push(...faultsOf({ accounts, line, isQuiet, now: this.now }, this.reference, this.holders));
  }

  /** Whether budget is kept for a call whose process died, or was kept until just now. */
  protected isAnyLost(line: readonly string[]): boolean {
    return this.lanes.some((lane) => {
      const key = lane.state === "gone" ? callOf(lane)?.key : undefined;
      const toldAt = key === undefined ? undefined : this.reference.line.get(key)?.toldAt;
      return key !== undefined && toldAt !== undefined && (toldAt !== null || !line.includes(key));
    });
  }

  protected isWaiting(agentId: string): boolean {
    return this.lanes.some(({ holder, state }) => holder.agentId === agentId && state === "waiting");
  }

  protected async keysInLine(): Promise<string[]> {
    const line = await this.stores.waiters(TENANT, this.root);
    return line.map(({ ask }) => ask.key);
  }

  protected async atRest(): Promise<number> {
    const accounts = await this.stores.accounts(TENANT, this.root);
    for (const key of await this.keysInLine()) this.faults.push(`${key} still waits at the end`);
    return accounts.reduce((sum, { reserved }) => sum + reserved.tokens + reserved.costMicros, 0);
  }

  protected isOut(holder: Holder): boolean {
    return this.lanes.some((lane) => lane.holder === holder && lane.state === "out");
  }

  protected isPaused(holder: Holder): boolean {
    return this.reference.chain(holder.node).some((node) => this.paused.has(node));
  }

  protected canAsk(holder: Holder): boolean {
    return !this.ended.has(holder.node) && !this.gone.has(holder.node) && !this.isPaused(holder);
  }
}
