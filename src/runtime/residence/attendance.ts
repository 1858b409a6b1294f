import { backoffDelay, type Clock } from "../../base/index.ts";
import {
  AlreadyOwnedError,
  CorruptRecordError,
  LeaseLostError,
  NotFoundError,
  StoreUnavailableError,
} from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";
import { isRunning, type ProcessIdentity, type Stores } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";

/** What attending to agents needs of those that live here. */
export interface Attended {
  readonly tenant: string;
  readonly isLeaving: boolean;
  readonly isClosing: boolean;
  isShutDown(key: AgentKey): boolean;
  activateUnlessShutDown(key: AgentKey): Promise<Activation | undefined>;
  present(key: AgentKey): Promise<Activation | undefined>;
  intake(activation: Activation): Promise<number>;
  /** Whether another process may take the agent up, and is to be told of what comes for it. */
  isOthers(key: AgentKey): boolean;
  /** Has some process take the agent up. */
  wake(key: AgentKey): Promise<void>;
  /** Gives the lease back and stops the actors; false when the inbox holds something new, and the agent lives on. */
  release(activation: Activation): Promise<boolean>;
}

const pauses = { baseMs: 50, capMs: 2_000 };

export interface AttendanceOptions {
  readonly stores: Pick<Stores, "holder">;
  readonly process: ProcessIdentity;
  readonly clock: Clock;
  readonly random: () => number;
  /** An agent cannot be carried on here. */
  onFailed(agentId: string, cause: unknown): void;
}

/**
 * Sees to agents for which something came, without anybody waiting for it: what goes wrong is a warning.
 *
 * Invariants
 * 1. Stores that do not answer now are asked again until they do: what came is told once, and nobody else looks.
 * 2. Nobody is woken whom another process has: that one hears of what came, or finds it before it gives the agent back.
 *    Where it dies before, the agent is unattended.
 */
export class Attendance {
  readonly #agents: Attended;
  readonly #options: AttendanceOptions;
  /** Those whose stores did not answer, and who are asked for again in a moment. */
  readonly #again = new Set<string>();

  constructor(agents: Attended, options: AttendanceOptions) {
    this.#agents = agents;
    this.#options = options;
  }

  /** Somebody posted to these agents: those that live here look, the others are taken up if nobody has them. */
  notify(agentIds: readonly string[]): void {
    for (const agentId of agentIds) if (!this.#again.has(agentId)) this.watch(agentId, this.#attendAtLast(agentId));
  }

  /** Takes the agent up here, unless it lives here or elsewhere; false then. */
  async rescue(agentId: string): Promise<boolean> {
    const key = this.#keyOf(agentId);
    if (this.#agents.isShutDown(key)) return false;
    // An attempt that is under way was made before, and may have met an owner that has gone since.
    if (await this.#agents.present(key)) return false;
    try {
      await this.#takeUp(key);
      return true;
    } catch (error) {
      this.#report(agentId, error);
      return false;
    }
  }

  /** A child that has ended its turn leaves memory, unless something came for it meanwhile. */
  async rest(activation: Activation): Promise<void> {
    await this.#agents.intake(activation);
    if (activation.openTurnId !== null) return;
    if (!(await this.#agents.release(activation)) && !activation.isLost) await this.#agents.intake(activation);
  }

  watch(agentId: string, work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#report(agentId, error));
  }

  async #attendAtLast(agentId: string): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#attend(this.#keyOf(agentId));
      } catch (error) {
        // Another call may have failed meanwhile, and tries again.
        if (!(error instanceof StoreUnavailableError) || this.#again.has(agentId)) throw error;
      }
      this.#again.add(agentId);
      const { clock, random } = this.#options;
      await clock.sleep(backoffDelay(attempt, random(), pauses));
      this.#again.delete(agentId);
    }
  }

  async #attend(key: AgentKey): Promise<void> {
    if (this.#agents.isClosing) return;
    const live = await this.#agents.present(key);
    if (live) await this.#agents.intake(live);
    if (live && !live.isLost) return;
    if (this.#agents.isOthers(key)) {
      if (!(await this.#isHeldByOthers(key))) await this.#agents.wake(key);
    } else if (!live && !this.#agents.isLeaving) await this.#takeUp(key);
  }

  async #takeUp(key: AgentKey): Promise<void> {
    const activation = await this.#agents.activateUnlessShutDown(key);
    if (!activation) return;
    // It was taken up only for what came: nobody holds it, and no turn is open.
    if (activation.openTurnId === null) await this.rest(activation);
  }

  /** False where it is known that whoever has it is dead: on this machine that shows at once. */
  async #isHeldByOthers(key: AgentKey): Promise<boolean> {
    const { stores, process: self } = this.#options;
    const holder = (await stores.holder(key))?.process;
    if (!holder || holder.processId === self.processId) return false;
    return holder.bootId !== self.bootId || isRunning({ pid: holder.pid, startTime: null });
  }

  #keyOf(agentId: string): AgentKey {
    return { tenant: this.#agents.tenant, agentId };
  }

  #report(agentId: string, error: unknown): void {
    // One whose definition is not known here is for a runtime that knows it.
    const isOthers = error instanceof AlreadyOwnedError || error instanceof NotFoundError;
    const isExpected = isOthers || error instanceof LeaseLostError || this.#agents.isClosing;
    if (isExpected) return;
    // Of damaged records the process is warned once.
    const isDamage = error instanceof CorruptRecordError;
    if (!isDamage) process.emitWarning(`agent ${agentId} could not be taken up: ${String(error)}`);
    this.#options.onFailed(agentId, error);
  }
}
