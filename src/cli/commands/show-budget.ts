import { spendingByAgent } from "../../budget/index.ts";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import type { AgentRecord } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { rootsByAge } from "../job/all-agents.ts";
import { type BudgetTree, readBudgets } from "../job/budget-tree.ts";
import { findAgent } from "../job/roots.ts";
import { type StoreOptions, storePlace, withStore } from "../job/store-place.ts";
import { budgetLines } from "../view/budget-lines.ts";
import { budgetRows } from "../view/budget-rows.ts";
import { columnsOf } from "../view/columns.ts";

export interface ShowBudgetOptions extends StoreOptions {
  readonly json?: boolean | undefined;
}

/** Who may spend what, and who has: the accounts of a tree as they stand. Without an id that of the newest agent. */
export async function showBudgetCommand(
  context: CliContext,
  text: string | undefined,
  options: ShowBudgetOptions,
): Promise<ExitCode> {
  const place = storePlace(context, options);
  const { top, tree } = await withStore(place, "openExisting", async (stores) => {
    const found = text === undefined ? await newestRoot(stores, place.name) : await findAgent(stores, text);
    return { top: found, tree: await readBudgets(stores, found) };
  });
  const now = Date.now();
  if (options.json === true) context.out(JSON.stringify(jsonOf(top, tree, now)));
  else budgetLines({ ...tree, now, width: columnsOf(context) }).forEach(context.out);
  return exitCodes.success;
}

/** Throws `InvalidInputError`: everything about an agent is a lot, and is not shown of one that was not named. */
export function assertNamed(agentId: string | undefined): asserts agentId is string {
  if (agentId !== undefined) return;
  throw new InvalidInputError("missing required argument 'agentId'; with --budget it may be left out");
}

async function newestRoot(stores: Stores, placeName: string): Promise<AgentRecord> {
  for await (const newest of rootsByAge(stores, 1)) return newest;
  throw new NotFoundError(`there is no agent in ${placeName} yet`);
}

function jsonOf(top: AgentRecord, { agents, accounts, own }: BudgetTree, now: number) {
  const rows = budgetRows(accounts, now);
  const spending = spendingByAgent(accounts);
  const names = new Map(agents.map(({ agentId, definition }) => [agentId, definition.name]));
  return {
    agentId: top.agentId,
    accounts: accounts.map(({ id, agentId, turnId, parentId, models, ...account }) => ({
      id,
      agentId,
      name: names.get(agentId) ?? null,
      turnId,
      parentId,
      isActive: account.activeCount > 0,
      limits: rows.flatMap((row) => {
        if (row.account.id !== id) return [];
        const { limit, used, reserved, unconfirmed, max } = row;
        return [{ limit, used, reserved, unconfirmed, max }];
      }),
      models,
    })),
    agents: agents.map(({ agentId, parentAgentId, definition }) => {
      const spent = { own: own.get(agentId) ?? {}, tree: spending.get(agentId)?.tree ?? {} };
      return { agentId, parentAgentId, name: definition.name, ...spent };
    }),
  };
}
