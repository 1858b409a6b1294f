import { optionsOf, type OptionsSchema, shortHash, wholeNumberRule } from "../../base/index.ts";
import { InvalidInputError, PolicyRefusedError } from "../../errors/index.ts";
import type { Schedule } from "../../state/index.ts";
import type { ScheduleCaller, ScheduleTurnInput, ScheduleTurnLimits, TurnSchedules } from "../../tools/index.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";
import { durationRule } from "./duration.ts";
import { inputRule, timesOf, timesRules } from "./schedule-options.ts";
import { assertApart, assertLater } from "./schedule-distance.ts";
import { assertSaved } from "./runtime-schedules.ts";
import type { StoredSchedules } from "./stored-schedules.ts";

const of = "run.scheduleTurn()";

const inputSchema: OptionsSchema<ScheduleTurnInput> = {
  rules: { ...timesRules, in: durationRule, input: inputRule },
  needed: ["input"],
  instead: { message: "input", prompt: "input", delay: "in", interval: "every", pattern: "cron" },
};

const limitsSchema: OptionsSchema<ScheduleTurnLimits> = {
  rules: { maxOpen: wholeNumberRule(1), minDistanceMs: wholeNumberRule(0) },
};

/**
 * The schedules that tools set for their own agent.
 *
 * Invariants
 * 1. One call sets one schedule, under a key derived from the call, also when its code runs again after a crash.
 * 2. A tool reads and cancels only schedules that tools of the same agent have set.
 * 3. Calls of one agent are counted one after the other, so that parallel calls keep to `maxOpen` too.
 */
export class RunSchedules {
  readonly #core: RuntimeCore;
  readonly #schedules: StoredSchedules;
  /** The last call of each agent that sets a schedule. */
  readonly #last = new Map<string, Promise<unknown>>();

  constructor(core: RuntimeCore, schedules: StoredSchedules) {
    this.#core = core;
    this.#schedules = schedules;
  }

  /** The schedules as one tool call sees them. */
  ofCall(caller: ScheduleCaller): TurnSchedules {
    return {
      add: async (input, limits) => await this.#inTurn(caller.agentId, () => this.#add(caller, input, limits)),
      list: async () => await this.#openOnes(caller.agentId),
      cancel: async (key) => await this.#cancel(caller, key),
    };
  }

  async #inTurn<T>(agentId: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(agentId) ?? Promise.resolve();
    const done = before.then(work, work);
    this.#last.set(agentId, done);
    try {
      return await done;
    } finally {
      if (this.#last.get(agentId) === done) this.#last.delete(agentId);
    }
  }

  async #add(caller: ScheduleCaller, given: ScheduleTurnInput, limits?: ScheduleTurnLimits): Promise<Schedule> {
    const { in: inMs, input, ...times } = optionsOf<ScheduleTurnInput>(given, of, inputSchema);
    const { maxOpen, minDistanceMs } = optionsOf<ScheduleTurnLimits>(limits, of, limitsSchema);
    this.#assertOwn(caller);
    const { stores, tenant, clock } = this.#core;
    const { agentId, callId } = caller;
    const key = `turn-${shortHash(`${agentId}\n${callId}`)}`;
    const known = await stores.schedule(tenant, key);
    if (known) return known;
    if (inMs !== undefined && times.at !== undefined)
      throw new InvalidInputError(`${of}: set either at or in, not both`);
    const now = clock.now();
    const at = inMs === undefined ? {} : { at: now + Number(inMs) };
    const when = await timesOf({ ...times, ...at }, now, of);
    if (minDistanceMs !== undefined) {
      assertLater(when, now, { of, minDistanceMs });
      await assertApart(when, now, { of, minDistanceMs });
    }
    if (maxOpen !== undefined) await this.#assertFewer(agentId, maxOpen);
    return await this.#schedules.put(key, {
      definition: caller.definition,
      agentId,
      ownerId: caller.ownerId,
      sessionId: caller.sessionId,
      metadata: {},
      actorId: caller.actorId,
      input,
      budget: null,
      ...when,
      ifMissed: "once",
      ifBusy: "queue",
      setByTurnId: caller.turnId,
    });
  }

  #assertOwn({ agentId, parentAgentId, isFork }: ScheduleCaller): void {
    if (parentAgentId !== null) {
      throw new PolicyRefusedError(`agent "${agentId}" is a subagent; only a root agent can schedule turns of itself`);
    }
    if (isFork) throw new PolicyRefusedError(`agent "${agentId}" is a fork, which opens no turns by itself`);
    assertSaved(this.#core, agentId);
  }

  async #openOnes(agentId: string): Promise<Schedule[]> {
    const { stores, tenant } = this.#core;
    const open: Schedule[] = [];
    for (let after: string | undefined; ; ) {
      const page = await stores.schedules({ tenant, agentId, after });
      open.push(...page.filter(({ setByTurnId, nextAt }) => setByTurnId !== null && nextAt !== null));
      after = page.at(-1)?.key;
      if (page.length < 100 || after === undefined) return open;
    }
  }

  async #assertFewer(agentId: string, maxOpen: number): Promise<void> {
    const open = await this.#openOnes(agentId);
    if (open.length < maxOpen) return;
    throw new InvalidInputError(
      `${open.length} turns are scheduled already, and at most ${maxOpen} may be; cancel one first`,
    );
  }

  async #cancel({ agentId }: ScheduleCaller, key: string): Promise<boolean> {
    const { stores, tenant } = this.#core;
    const schedule = typeof key === "string" ? await stores.schedule(tenant, key) : undefined;
    if (schedule?.agentId !== agentId || schedule.setByTurnId === null) return false;
    return await stores.removeSchedule(tenant, schedule.key);
  }
}
