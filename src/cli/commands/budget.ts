import { type LimitName, limitNames, type LimitsChange, limitsChangeOf, outerPartsOf } from "../../budget/index.ts";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import { DEFAULT_TENANT, limitsChangeText } from "../../state/index.ts";
import { assertBudgetSet } from "../../stores/index.ts";
import { type BudgetChangeOptions, budgetChangeOf } from "../budget-options.ts";
import { type CliContext, userName } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { findAgent, ownerOf } from "../job/find-agent.ts";
import { type StoreLocation, type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
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
  if (outerPartsOf(text)) return await addCommand(context, text, change, place);
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

/** The limits that accounts above the roots have, by the limit of the same flag. */
const outerLimits: Readonly<Partial<Record<LimitName, LimitName>>> = {
  maxSteps: "maxTreeSteps",
  maxTreeSteps: "maxTreeSteps",
  maxToolCalls: "maxTreeToolCalls",
  maxTreeToolCalls: "maxTreeToolCalls",
  maxTokens: "maxTokens",
  maxCostMicros: "maxCostMicros",
};

/** Adds to the limits of an account above the roots until it renews: its limits themselves are options of the runtime. */
async function addCommand(
  context: CliContext,
  accountId: string,
  { set, removed }: LimitsChange,
  place: StoreLocation,
): Promise<ExitCode> {
  const amounts = limitNames.flatMap((name) =>
    set[name] === undefined ? [] : [[outerLimits[name], set[name]] as const],
  );
  if (removed.length > 0 || amounts.some(([name]) => name === undefined)) {
    throw new InvalidInputError(
      `to an account above the roots, --max-cost, --max-tokens, --max-steps and --max-tool-calls add an amount; its limits are set by createRuntime({ accounts })`,
    );
  }
  return await withStore(place, "openExisting", async (stores) => {
    const now = Date.now();
    const known = (await stores.outer.list(DEFAULT_TENANT)).find(({ id }) => id === accountId);
    const more = Object.fromEntries(amounts);
    const account = await stores.outer.raise(DEFAULT_TENANT, accountId, more, { now, steady: 0 });
    if (!account) throw new NotFoundError(`there is no account "${accountId}"; \`forecast\` lists the accounts`);
    context.out(
      `Until it renews: ${limitsChangeText({ accountId, limits: account.limits, before: known?.limits ?? {} })}`,
    );
    return exitCodes.success;
  });
}
