import { reading } from "../../base/index.ts";
import {
  type Binding,
  bindingOf,
  Calendar,
  type Limits,
  nothingBinds,
  outerAccountId,
  type OuterLimits,
  type OuterScope,
  outerWindows,
} from "../../budget/index.ts";
import { type AccountsOptions, type WindowLimits, windowLimitsOf } from "../api/accounts-options.ts";

interface Outer {
  readonly tenant: string;
  readonly clock: { now(): number };
  readonly options: AccountsOptions | undefined;
}

const noWindows: WindowLimits = new Map();
const noLimits: readonly OuterLimits[] = Object.freeze([]);
/** Nothing is allowed while the limits of an owner cannot be read. */
const nothingAllowed: WindowLimits = new Map([["total", { maxTreeSteps: 0, maxTreeToolCalls: 0 } satisfies Limits]]);
const OWNERS_KEPT = 10_000;

/**
 * The accounts above the roots as this process configures them.
 * Owns: the last limits of each owner. Does not own: the accounts.
 *
 * Invariant: an owner's function is called before each model call; if it fails, the call fails, and nothing is reserved under guessed
 * limits.
 */
export class OuterBudgets {
  readonly #tenant: string;
  readonly #clock: { now(): number };
  readonly #options: AccountsOptions;
  readonly #calendar: Calendar;
  readonly #ofTenant: WindowLimits;
  readonly #ofOwners = new Map<string, WindowLimits>();
  readonly isUsed: boolean;

  constructor({ tenant, clock, options }: Outer) {
    this.#tenant = tenant;
    this.#clock = clock;
    this.#options = options ?? {};
    this.isUsed = this.#options.tenant !== undefined || this.#options.owner !== undefined;
    this.#calendar = new Calendar(this.#options.timeZone ?? "UTC");
    this.#ofTenant = this.#options.tenant ? windowLimitsOf(this.#options.tenant, "accounts.tenant") : noWindows;
  }

  /** The smallest limits above the root. Throws `InvalidInputError` if the owner's limits cannot be read. */
  bindingOf(ownerId: string | null): Binding {
    if (!this.isUsed) return nothingBinds;
    const all = [...this.#limitsOf(ownerId).values(), ...this.#ofTenant.values()];
    return all.reduce<Binding>((above, limits) => bindingOf(limits, above), nothingBinds);
  }

  /** The accounts above the root of an owner's agent, from the owner's to the tenant's, in their windows at this moment. */
  limitsOf(ownerId: string | null): readonly OuterLimits[] {
    if (!this.isUsed) return noLimits;
    const known = ownerId === null ? noWindows : this.#ofOwners.get(ownerId);
    return [
      ...(ownerId === null ? [] : this.#placed("owner", ownerId, known ?? this.#readOrNothing(ownerId))),
      ...this.#placed("tenant", this.#tenant, this.#ofTenant),
    ];
  }

  /** The ids of the accounts that an owner's agents spend on. */
  idsOf(ownerId: string | null): readonly string[] {
    return this.limitsOf(ownerId).map((limits) => outerAccountId(limits));
  }

  #limitsOf(ownerId: string | null): WindowLimits {
    const { owner } = this.#options;
    if (ownerId === null || owner === undefined) return noWindows;
    const where = `accounts.owner(${JSON.stringify(ownerId.slice(0, 64))})`;
    const limits = reading(where, () => {
      const given: unknown = typeof owner === "function" ? owner(ownerId) : owner;
      return given === undefined ? noWindows : windowLimitsOf(given, where);
    });
    if (this.#ofOwners.size >= OWNERS_KEPT) this.#ofOwners.clear();
    this.#ofOwners.set(ownerId, limits);
    return limits;
  }

  #readOrNothing(ownerId: string): WindowLimits {
    try {
      return this.#limitsOf(ownerId);
    } catch {
      return nothingAllowed;
    }
  }

  #placed(scope: OuterScope, name: string, limits: WindowLimits): OuterLimits[] {
    const { revision = 0 } = this.#options;
    const now = this.#clock.now();
    return outerWindows.flatMap((window) => {
      const ofWindow = limits.get(window);
      if (!ofWindow) return [];
      return [{ scope, name, window, limits: ofWindow, revision, ...this.#calendar.periodAt(window, now) }];
    });
  }
}
