import type { LimitName, Limits } from "../../budget/index.ts";
import type { RunAgent, RunEntry, RunEntryOf } from "./run-log.ts";

/** The amounts that limits bound, in the units of the limits. */
export interface AccountUse {
  readonly steps: number;
  readonly treeSteps: number;
  readonly toolCalls: number;
  readonly treeToolCalls: number;
  readonly tokens: number;
  readonly costMicros: number;
}

/** One account at one moment. Never changed; a new one takes its place. */
export interface AccountMoment {
  readonly used: AccountUse;
  readonly reservedTokens: number;
  readonly reservedMicros: number;
  readonly unconfirmedTokens: number;
  readonly unconfirmedMicros: number;
  /** Reservations that are open on it. */
  readonly inFlight: number;
  readonly refusals: number;
  /** Calls of this account or below that wait for room on it. */
  readonly waiting: number;
}

const emptyAccount: AccountMoment = {
  used: { steps: 0, treeSteps: 0, toolCalls: 0, treeToolCalls: 0, tokens: 0, costMicros: 0 },
  reservedTokens: 0,
  reservedMicros: 0,
  unconfirmedTokens: 0,
  unconfirmedMicros: 0,
  inFlight: 0,
  refusals: 0,
  waiting: 0,
};

/** The fixed part of an account. */
export interface RunAccount {
  readonly id: string;
  readonly index: number;
  readonly agent: number;
  /** Place of the account above; -1 at the top. */
  readonly parent: number;
  /** The turn's number; 0: the account of a whole life. */
  readonly turn: number;
  /** Undefined until they are known: limits of a whole life are in no entry, but with the stored account. */
  limits: Limits | undefined;
  readonly children: number[];
  readonly openedAt: number;
}

/** Which amount a limit bounds. Deadlines and working time go by clocks that no entry has. */
export const amountOf: Readonly<Partial<Record<LimitName, keyof AccountUse>>> = {
  maxSteps: "steps",
  maxTreeSteps: "treeSteps",
  maxToolCalls: "toolCalls",
  maxTreeToolCalls: "treeToolCalls",
  maxTokens: "tokens",
  maxCostMicros: "costMicros",
};

/**
 * The tree of accounts of a run.
 * Owns: the accounts that entries have named, and their order. Does not own: the amounts at a moment.
 */
export class RunAccounts {
  readonly all: RunAccount[] = [];
  readonly #byId = new Map<string, number>();

  /** -1 for an account that is not known. */
  indexOf(id: string): number {
    return this.#byId.get(id) ?? -1;
  }

  /** Notes the accounts that the entry opens. */
  note(agent: RunAgent, entry: RunEntry): void {
    if (entry.type !== "turn.started") return;
    if (agent.accountId !== null) this.#open(agent.accountId, agent, { above: agent.parentAccountId, at: entry.at });
    if (entry.accountId === agent.accountId) return;
    const above = agent.accountId ?? agent.parentAccountId;
    const index = this.#open(entry.accountId, agent, { above, at: entry.at, turn: entry.number });
    const account = this.all[index];
    if (account) account.limits = entry.limits;
  }

  /** Adds limits that only the stored accounts have. */
  setLimits(id: string, limits: Limits): void {
    const account = this.all[this.indexOf(id)];
    if (account) account.limits ??= limits;
  }

  #open(id: string, agent: RunAgent, place: { above: string | null; at: number; turn?: number }): number {
    const known = this.indexOf(id);
    if (known >= 0) return known;
    const index = this.all.length;
    const parent = place.above === null ? -1 : this.indexOf(place.above);
    const { at: openedAt, turn = 0 } = place;
    this.#byId.set(id, index);
    this.all.push({ id, index, agent: agent.index, parent, turn, limits: undefined, children: [], openedAt });
    this.all[parent]?.children.push(index);
    return index;
  }
}

/** Puts the accounts after one more entry into `moments`, which are by the places of the accounts. */
export function foldAccountEntry(accounts: RunAccounts, moments: (AccountMoment | undefined)[], entry: RunEntry): void {
  const change = changeOf(entry);
  if (!change) return;
  let isOwn = true;
  for (let index = accounts.indexOf(change.accountId); index >= 0; index = accounts.all[index]?.parent ?? -1) {
    const { agent } = accounts.all[index] ?? {};
    moments[index] = change.next(moments[index] ?? emptyAccount, isOwn);
    const above = accounts.all[accounts.all[index]?.parent ?? -1];
    // Steps and tool calls count on the agent's own accounts, and as tree amounts on all above.
    if (above?.agent !== agent) isOwn = false;
  }
}

interface AccountChange {
  readonly accountId: string;
  /** `isOwn`: the account belongs to the agent of the entry. */
  readonly next: (account: AccountMoment, isOwn: boolean) => AccountMoment;
}

/** The change that an entry makes on its account and on all above. */
export function changeOf(entry: RunEntry): AccountChange | undefined {
  switch (entry.type) {
    case "model.requested":
    case "generate.requested":
      return requestChange(entry);
    case "model.responded":
    case "generate.responded":
    case "model.failed":
    case "generate.failed":
      return settleChange(entry);
    case "tool.started":
      if (entry.attempt > 1) return undefined;
      return { accountId: entry.accountId, next: withToolCall };
    case "child.spawned":
      return { accountId: entry.accountId, next: withToolCall };
    case "intent.refused": {
      if (entry.accountId === undefined) return undefined;
      const waiting = entry.reason === "mustWait" ? 1 : 0;
      const next = (account: AccountMoment): AccountMoment => ({
        ...account,
        refusals: account.refusals + 1,
        waiting: account.waiting + waiting,
      });
      return { accountId: entry.accountId, next };
    }
    default:
      return undefined;
  }
}

function withToolCall(account: AccountMoment, isOwn: boolean): AccountMoment {
  const { used } = account;
  const toolCalls = used.toolCalls + (isOwn ? 1 : 0);
  return { ...account, used: { ...used, toolCalls, treeToolCalls: used.treeToolCalls + 1 } };
}

function requestChange({
  ask,
  reservation,
}: RunEntryOf<"model.requested" | "generate.requested">): AccountChange | undefined {
  if (reservation === null) return undefined;
  const opened = ask.opensStep ? 1 : 0;
  return {
    accountId: reservation.accountId,
    next: (account, isOwn) => ({
      ...account,
      used: {
        ...account.used,
        steps: account.used.steps + (isOwn ? opened : 0),
        treeSteps: account.used.treeSteps + opened,
      },
      reservedTokens: account.reservedTokens + reservation.tokens,
      reservedMicros: account.reservedMicros + reservation.costMicros,
      inFlight: account.inFlight + 1,
    }),
  };
}

type Settling = RunEntryOf<"model.responded" | "generate.responded" | "model.failed" | "generate.failed">;

function settleChange({ settlement }: Settling): AccountChange | undefined {
  if (settlement === null) return undefined;
  const { reservation, tokens, costMicros, unconfirmed } = settlement;
  return {
    accountId: reservation.accountId,
    next: (account) => ({
      ...account,
      used: {
        ...account.used,
        tokens: account.used.tokens + tokens,
        costMicros: account.used.costMicros + costMicros,
      },
      reservedTokens: account.reservedTokens - reservation.tokens,
      reservedMicros: account.reservedMicros - reservation.costMicros,
      unconfirmedTokens: account.unconfirmedTokens + (unconfirmed ? tokens : 0),
      unconfirmedMicros: account.unconfirmedMicros + (unconfirmed ? costMicros : 0),
      inFlight: account.inFlight - 1,
    }),
  };
}

/** How full a limit is, as parts of its maximum from 0 to 1. */
export interface LimitUse {
  readonly limit: LimitName;
  readonly used: number;
  readonly reserved: number;
  readonly unconfirmed: number;
  readonly max: number;
}

/** The limits of an account with their figures, the fullest first. */
export function limitUses({ limits }: RunAccount, moment: AccountMoment | undefined): LimitUse[] {
  const uses = Object.entries(limits ?? {}).flatMap(([name, max]): LimitUse[] => {
    const limit = name as LimitName;
    const amount = amountOf[limit];
    if (amount === undefined || typeof max !== "number") return [];
    const account = moment ?? emptyAccount;
    const [reserved, unconfirmed] = setAside(account, amount);
    return [{ limit, used: account.used[amount], reserved, unconfirmed, max }];
  });
  return uses.toSorted((one, other) => shareOf(other) - shareOf(one));
}

function setAside(account: AccountMoment, amount: keyof AccountUse): [reserved: number, unconfirmed: number] {
  if (amount === "tokens") return [account.reservedTokens, account.unconfirmedTokens];
  if (amount === "costMicros") return [account.reservedMicros, account.unconfirmedMicros];
  return [0, 0];
}

export function shareOf({ used, reserved, max }: Pick<LimitUse, "used" | "reserved" | "max">): number {
  return max === 0 ? 1 : Math.min(1, (used + reserved) / max);
}
