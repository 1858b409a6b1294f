import { limitsChangeOf } from "../../budget/index.ts";
import { DEFAULT_TENANT, limitsChangeText } from "../../state/index.ts";
import { assertBudgetSet } from "../../stores/index.ts";
import { type BudgetChangeOptions, budgetChangeOf } from "../budget-options.ts";
import { type CliContext, userName } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { findAgent, ownerOf } from "../job/find-agent.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { wakeWorkers } from "./abort.ts";

export type SetBudgetOptions = StoreOptions & BudgetChangeOptions;

/**
 * Changes limits of an agent's lifetime through the store. The process that runs the agent journals the change, now or
 * later.
 */
export async function budgetCommand(context: CliContext, text: string, options: SetBudgetOptions): Promise<ExitCode> {
  const now = Date.now();
  const change = limitsChangeOf(budgetChangeOf(options), now);
  const place = storeLocation(context, options);
  return await withStore(place, "openExisting", async (stores) => {
    const { agentId } = await findAgent(stores, text);
    const key = { tenant: DEFAULT_TENANT, agentId };
    const outcome = await stores.setBudget(key, { change, by: userName() }, now);
    assertBudgetSet(agentId, outcome);
    const { id: accountId, limits } = outcome.account;
    if (outcome.type === "unchanged") {
      context.out(`${agentId} already has these limits.`);
      return exitCodes.success;
    }
    context.out(`Changed: ${limitsChangeText({ accountId, limits, before: outcome.before })}`);
    if ((await ownerOf(stores, key)) === undefined) await wakeWorkers(place, outcome.posted);
    return exitCodes.success;
  });
}
