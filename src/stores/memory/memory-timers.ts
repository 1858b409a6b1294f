import type { Timer } from "../../state/index.ts";
import type { AgentRows } from "./memory-rows.ts";
import type { MemoryUndo } from "../rules/undo.ts";
import { isDue, type Moment } from "../rules/moment.ts";

/** The alarms of all agents, and which comes next. */
export class MemoryTimers {
  readonly #all = new Set<Timer>();
  readonly #undo: MemoryUndo;
  /** Time of the earliest one, Infinity when there is none; undefined when it must be looked for. */
  #earliest: number | undefined = Number.POSITIVE_INFINITY;

  constructor(undo: MemoryUndo) {
    this.#undo = undo;
  }

  set(agent: AgentRows, timer: Timer): void {
    this.clear(agent, timer.id);
    this.#undo.set(agent.timers, timer.id, timer);
    this.#add(timer);
    this.#undo.note(() => this.#remove(timer));
  }

  clear(agent: AgentRows, timerId: string): void {
    const timer = agent.timers.get(timerId);
    if (!timer) return;
    this.#undo.note(() => {
      agent.timers.set(timerId, timer);
      this.#add(timer);
    });
    agent.timers.delete(timerId);
    this.#remove(timer);
  }

  due(moment: Moment, limit: number): Timer[] {
    if (this.#next() > Math.max(moment.now, moment.steady)) return [];
    const due = [...this.#all].filter((timer) => isDue(timer, moment));
    return due.sort((a, b) => a.dueAt - b.dueAt).slice(0, limit);
  }

  nextAt(): number | undefined {
    const next = this.#next();
    return Number.isFinite(next) ? next : undefined;
  }

  #add(timer: Timer): void {
    this.#all.add(timer);
    if (this.#earliest !== undefined) this.#earliest = Math.min(this.#earliest, timer.dueAt);
  }

  #remove(timer: Timer): void {
    this.#all.delete(timer);
    if (timer.dueAt === this.#earliest) this.#earliest = undefined;
  }

  #next(): number {
    if (this.#earliest === undefined) {
      this.#earliest = Number.POSITIVE_INFINITY;
      for (const { dueAt } of this.#all) this.#earliest = Math.min(this.#earliest, dueAt);
    }
    return this.#earliest;
  }
}
