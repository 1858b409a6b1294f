import { randomUUID } from "node:crypto";
import {
  areSameLimits,
  type Binding,
  bindingField,
  bindingOf,
  changedLimits,
  type Moment,
  nothingBinds,
  turnFlagsOf,
} from "../../budget/index.ts";
import { AgentNotStartedError, InvalidInputError, InvariantError, NotFoundError } from "../../errors/index.ts";
import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import { Ledger } from "./ledger.ts";
import type { SetBudgetOutcome } from "./outcomes.ts";
import type { BudgetCommand } from "./ports.ts";
import type { Tables } from "./tables.ts";

type BudgetItem = Extract<InboxItem, { kind: "budget.changed" }>;

/** Throws the error for a refused change: `NotFoundError`, `InvalidInputError` or `AgentNotStartedError`. */
export function assertBudgetSet(
  agentId: string,
  outcome: SetBudgetOutcome,
): asserts outcome is Extract<SetBudgetOutcome, { type: "changed" | "unchanged" }> {
  if (outcome.type === "notFound") throw new NotFoundError(`there is no agent "${agentId}"`);
  if (outcome.type === "unlimited") {
    throw new InvalidInputError(
      `agent "${agentId}" was created without a budget for its life, which cannot be added later; set budget when you create the agent`,
    );
  }
  if (outcome.type === "asleep") {
    throw new AgentNotStartedError(`agent "${agentId}" is shut down; call start() before you change its budget`);
  }
}

/**
 * Changes the limits of an agent's lifetime account. They apply from this transaction on; the change is journalled when the agent's owner
 * processes the item.
 */
export function setBudget(
  tables: Tables,
  key: AgentKey,
  { change, by }: BudgetCommand,
  moment: Moment,
): SetBudgetOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  if (record.accountId === null) return { type: "unlimited" };
  if (record.status === "shutdown") return { type: "asleep" };
  const { accountId } = record;
  const account = tables.account(key.tenant, accountId);
  if (!account) throw new InvariantError(`account ${accountId} of agent ${key.agentId} is missing`);
  const before = account.limits;
  const limits = changedLimits(before, change);
  if (areSameLimits(before, limits)) return { type: "unchanged", account };
  const itemKey = `budget.changed:${key.agentId}:${randomUUID()}`;
  const ledger = new Ledger(tables, { id: itemKey, key, rootAgentId: record.rootAgentId }, moment);
  ledger.setLimits(accountId, limits);
  const { posted, timers, accounts } = ledger.flush();
  const item: BudgetItem = { kind: "budget.changed", key: itemKey, at: moment.now };
  const told = rebind(
    tables,
    { ...record, turnLimits: turnFlagsOf(limits) },
    { ...item, change: { by, accountId, limits, before } },
  );
  return {
    type: "changed",
    account: accounts.find(({ id }) => id === accountId) ?? account,
    before,
    posted: [...new Set([...posted, ...told])],
    timers,
  };
}

/**
 * Updates the binding limits of an agent and of all agents below it, and posts the change to the agent and to those with an owner.
 * Returns the agents to which it was posted.
 */
function rebind(tables: Tables, record: AgentRecord, item: BudgetItem): string[] {
  const { binding: _, ...rest } = record;
  const field = bindingField(bindingOfChain(tables, record));
  tables.putAgent({ ...rest, ...field });
  const { tenant, agentId } = record;
  const isHere = item.change !== undefined || tables.head(record).holder !== null;
  if (isHere) tables.addToInbox({ tenant, agentId }, { ...item, ...field });
  const { change: _own, ...ofAbove } = item;
  const below = tables.childrenOf(record).flatMap((child) => rebind(tables, child, ofAbove));
  return isHere ? [agentId, ...below] : below;
}

/** The binding of the accounts above those of the agent's turns, from the top of its tree down. */
function bindingOfChain(tables: Tables, { tenant, accountId, parentAccountId }: AgentRecord): Binding {
  const bindingAt = (id: string | null): Binding => {
    const account = id === null ? undefined : tables.account(tenant, id);
    return account ? bindingOf(account.limits, bindingAt(account.parentId)) : nothingBinds;
  };
  return bindingAt(accountId ?? parentAccountId);
}
