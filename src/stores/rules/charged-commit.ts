import { randomUUID } from "node:crypto";
import {
  type Account,
  type Hold,
  type Limits,
  type Moment,
  outerAccountId,
  outerPartsOf,
  outerScopes,
  outerWindows,
} from "../../budget/index.ts";
import { faultPoint } from "../../base/index.ts";
import type { Batch } from "./batch.ts";
import { commitBatch } from "./commit.ts";
import {
  chargeOuter,
  concernsOuter,
  endedHolds,
  endHolds,
  endOf,
  endOuterClaims,
  freedItem,
  raiseOuter,
  settleInFull,
  settleOuter,
} from "./outer-accounts.ts";
import type { HoldEnd, OuterAnswers } from "./outer-answers.ts";
import type { CommitOutcome, Stale } from "./outcomes.ts";
import type { OuterAccounts } from "./ports.ts";
import type { Database, OuterKind, OuterRows } from "./tables.ts";

/** A hold younger than this is not examined, since its batch is probably being applied. In milliseconds. */
const EXAMINED_AFTER_MS = 10_000;
/** A process that was silent for this long counts as gone; one that waits for a model is not. In milliseconds. */
const SILENT_MS = 600_000;
const PAGE = 500;

/**
 * Commits a batch after it was charged above its root, in a transaction of its own; a batch that concerns no account there, or has its
 * answers, is only committed. If this process dies in between, `OuterAccounts.tidy`
 * returns what was reserved; if the outcome of the commit is unknown, the batch is sent again and finds its holds.
 */
export async function commitCharged(
  outer: OuterAccounts,
  batch: Batch,
  moment: Moment,
  commit: (answers: OuterAnswers | undefined) => Promise<CommitOutcome>,
): Promise<CommitOutcome> {
  if (batch.answers || !concernsOuter(batch)) return await commit(batch.answers);
  const answers = await outer.charge(batch, moment);
  faultPoint("outer.charged");
  const outcome = await commit(answers);
  faultPoint("outer.committed");
  const ends = endedHolds(answers, outcome);
  if (ends.length > 0) await outer.end(batch.key.tenant, ends, moment);
  return withAnswers(outcome, answers);
}

function isOwners(accountId: string): boolean {
  return outerPartsOf(accountId)?.scope === "owner";
}

/** The outcome with the warnings of the accounts above, and the agents of other trees that were woken. */
function withAnswers(outcome: CommitOutcome, { warnings, accounts, woken }: OuterAnswers): CommitOutcome {
  if (outcome.type === "stale") return outcome;
  // The events of an agent must not show what other owners have spent.
  const above = accounts.filter(({ id }) => isOwners(id));
  return {
    ...outcome,
    ...(above.length === 0 ? {} : { above }),
    warnings: [...outcome.warnings, ...warnings.filter(({ accountId }) => isOwners(accountId))],
    posted: [...new Set([...outcome.posted, ...woken])],
  };
}

/** Undoes the work of a transaction whose batch is stale. */
class StaleBatch extends Error {
  readonly outcome: Stale;

  constructor(outcome: Stale) {
    super("the batch is stale");
    this.outcome = outcome;
  }
}

/** The accounts above the roots in a database. Owns: nothing; all state is in the rows. */
export class OuterStores implements OuterAccounts {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Charges and commits in one transaction. A stale batch charges nothing: its calls are settled by the agent's next owner. */
  async commitTogether(batch: Batch, moment: Moment): Promise<CommitOutcome> {
    try {
      return await this.#database.write(() => this.#chargeAndCommit(batch, moment));
    } catch (error) {
      if (error instanceof StaleBatch) return error.outcome;
      throw error;
    }
  }

  #chargeAndCommit(batch: Batch, moment: Moment): CommitOutcome {
    const { tables } = this.#database;
    const { tenant } = batch.key;
    const answers = chargeOuter(tables, batch, moment);
    const outcome = commitBatch(tables, batch, moment, answers);
    if (outcome.type === "stale") throw new StaleBatch(outcome);
    const woken = [...answers.woken, ...endHolds(tables, tenant, endedHolds(answers, outcome), moment)];
    this.#postAll(tenant, woken, moment);
    return withAnswers(outcome, { ...answers, woken });
  }

  async charge(batch: Batch, moment: Moment): Promise<OuterAnswers> {
    const { tenant } = batch.key;
    return await this.#written(
      tenant,
      moment,
      () => chargeOuter(this.#database.tables, batch, moment),
      ({ woken }) => woken,
    );
  }

  async end(tenant: string, ends: readonly HoldEnd[], moment: Moment): Promise<void> {
    await this.#change(tenant, moment, () => endHolds(this.#database.tables, tenant, ends, moment));
  }

  async of(tenant: string, ownerId: string | null): Promise<Account[]> {
    const { tables } = this.#database;
    const ids = outerScopes.flatMap((scope) => {
      const name = scope === "owner" ? ownerId : tenant;
      return name === null ? [] : outerWindows.map((window) => outerAccountId({ scope, window, name }));
    });
    return await this.#database.read(() => ids.flatMap((id) => tables.outerRow(tenant, "account", id) ?? []));
  }

  async list(
    tenant: string,
    { after, limit = PAGE }: { readonly after?: string | undefined; readonly limit?: number | undefined } = {},
  ): Promise<Account[]> {
    return await this.#rows(tenant, "account", after, limit);
  }

  async #rows<Kind extends OuterKind>(
    tenant: string,
    kind: Kind,
    after: string | undefined,
    limit: number,
  ): Promise<OuterRows[Kind][]> {
    return await this.#database.read(() => this.#database.tables.outerRows(tenant, kind, after, limit));
  }

  async raise(tenant: string, accountId: string, more: Limits, moment: Moment): Promise<Account | undefined> {
    const work = () => raiseOuter(this.#database.tables, tenant, { accountId, more }, moment);
    const raised = await this.#written(tenant, moment, work, (result) => result?.woken ?? []);
    return raised?.account;
  }

  async tidy(tenant: string, moment: Moment): Promise<readonly string[]> {
    const posted: string[] = [];
    const { tables } = this.#database;
    for await (const hold of this.#holds(tenant)) {
      if (hold.at + EXAMINED_AFTER_MS <= moment.now) posted.push(...(await this.#examine(tenant, hold, moment)));
    }
    const waiting = await this.#database.read(() => tables.outerIds(tenant, "waiters", undefined, PAGE));
    for (const id of waiting) {
      posted.push(...(await this.#change(tenant, moment, () => endOuterClaims(tables, tenant, id, moment))));
    }
    return posted;
  }

  async forget(tenant: string, ownerId: string, moment: Moment): Promise<boolean> {
    const { tables } = this.#database;
    const own = (await this.of(tenant, ownerId)).filter(({ outer }) => outer?.scope === "owner").map(({ id }) => id);
    if (own.length === 0) return true;
    for await (const hold of this.#holds(tenant)) {
      if (!hold.accountIds.some((id) => own.includes(id))) continue;
      if (hold.isApart === true || (await this.#isStored(tenant, hold.agentId))) return false;
      await this.#change(tenant, moment, () => settleInFull(tables, tenant, hold.id, moment));
    }
    await this.#database.write(() => {
      for (const id of own) {
        tables.removeOuterRow(tenant, "account", id);
        tables.removeOuterRow(tenant, "waiters", id);
      }
    });
    await this.#database.scrub?.();
    return true;
  }

  async wake(tenant: string, agentIds: readonly string[], moment: Moment): Promise<void> {
    for (const agentId of agentIds) await this.#database.write(() => this.#postAll(tenant, [agentId], moment));
  }

  async *#holds(tenant: string): AsyncGenerator<Hold> {
    for (let after: string | undefined; ; ) {
      const holds = await this.#rows(tenant, "hold", after, PAGE);
      yield* holds;
      after = holds.at(-1)?.id;
      if (holds.length < PAGE || after === undefined) return;
    }
  }

  async #isStored(tenant: string, agentId: string): Promise<boolean> {
    return (await this.#database.read(() => this.#database.tables.agent({ tenant, agentId }))) !== undefined;
  }

  /** Ends a hold if its batch was not applied and never will be, or if its call was settled in the tree. */
  async #examine(
    tenant: string,
    { id, agentId, epoch, seq, processId, isApart, reservation }: Hold,
    moment: Moment,
  ): Promise<readonly string[]> {
    const { tables } = this.#database;
    const key = { tenant, agentId };
    if (isApart === true || !(await this.#isStored(tenant, agentId))) {
      const owner = isApart === true ? processId : null;
      const process = owner === null ? undefined : await this.#database.read(() => tables.process(owner));
      if (process && moment.steady - process.heartbeatAt <= SILENT_MS) return [];
      // The tree was deleted, or was in the memory of a process that is gone.
      return await this.#change(tenant, moment, () => settleInFull(tables, tenant, id, moment));
    }
    const head = await this.#database.read(() => tables.head(key));
    if (head.epoch === epoch && head.seq < seq && head.holder !== null) return [];
    const rows = await this.#database.read(() => tables.rowsFrom(key, seq));
    const entries = rows.flatMap((row) => row.entries);
    const end = endOf(
      { id, reservation },
      // A later owner of the agent may have another intent at this seq.
      entries.find((entry) => entry.seq === seq && entry.epoch === epoch),
    );
    if (end) return await this.#change(tenant, moment, () => endHolds(tables, tenant, [end], moment));
    for (const entry of entries) {
      const settlement = "settlement" in entry ? entry.settlement : null;
      if (settlement?.reservation.hold !== id) continue;
      // A later owner has ended the hold as it settled the call; then the batch was charged once more, because its first owner sent it again.
      const isAgain = entry.epoch > epoch;
      return await this.#change(tenant, moment, () =>
        isAgain
          ? endHolds(tables, tenant, [{ id, as: "return" }], moment)
          : settleOuter(tables, key, settlement, moment),
      );
    }
    return [];
  }

  #change(tenant: string, moment: Moment, work: () => readonly string[]): Promise<readonly string[]> {
    return this.#written(tenant, moment, work, (woken) => woken);
  }

  /** Writes above the roots, and posts to the agents that the work has woken. */
  async #written<T>(
    tenant: string,
    moment: Moment,
    work: () => T,
    wokenBy: (result: T) => readonly string[],
  ): Promise<T> {
    const database = this.#database;
    if (database.spansTrees) {
      return await database.write(() => {
        const result = work();
        this.#postAll(tenant, wokenBy(result), moment);
        return result;
      });
    }
    const result = await database.write(work);
    // If this process dies before, `tidy` wakes them again.
    await Promise.all(wokenBy(result).map((agentId) => database.write(() => this.#postAll(tenant, [agentId], moment))));
    return result;
  }

  #postAll(tenant: string, agentIds: readonly string[], { now }: Moment): void {
    const { tables } = this.#database;
    for (const agentId of new Set(agentIds)) {
      const key = { tenant, agentId };
      // An agent of a tree in the memory of a process is not in these tables.
      if (tables.agent(key)) tables.addToInbox(key, freedItem(randomUUID(), now));
    }
  }
}
