import type { Reservation } from "../../src/budget/index.ts";
import type { Holder } from "./holder.ts";
import type { CallPlan } from "./plan.ts";
import type { PlainCall } from "./reference.ts";

/** Calls that an agent makes sequentially. */
export interface Lane {
  readonly holder: Holder;
  readonly calls: readonly CallPlan[];
  readonly name: string;
  /** Index of the current call. */
  next: number;
  /**
   * `held`: it waited when its agent was paused, and asks again when it is resumed. `gone`: it waited and never asks again.
   */
  state: "idle" | "waiting" | "out" | "held" | "gone";
  asks: number;
  reservation: Reservation | null;
}

export function lanesOf(holder: Holder, lanes: readonly (readonly CallPlan[])[]): Lane[] {
  return lanes.map((calls, lane) => ({
    holder,
    calls,
    name: `${holder.agentId}#1:${lane}`,
    next: 0,
    state: "idle",
    asks: 0,
    reservation: null,
  }));
}

/** The lane's current call. Its prompt may change when it asks again after a wait. */
export function callOf({ calls, next, asks, name, holder }: Lane): PlainCall | undefined {
  const plan = calls[next];
  if (!plan) return undefined;
  const { promptTokens, outputTokens, price, opensStep, change } = plan;
  const prompt = Math.max(1, promptTokens + (asks > 0 ? change : 0));
  return { key: `${name}:${next}`, holder: holder.node, promptTokens: prompt, outputTokens, price, opensStep };
}

export function endCall(lane: Lane): void {
  lane.next += 1;
  lane.asks = 0;
  lane.state = "idle";
  lane.reservation = null;
}
