import { type Account, type Forecast, forecastsOf, shownAccount } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { accountText, amountText, DEFAULT_TENANT, shownLimit, usedText } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { findAgent } from "../job/find-agent.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { formatTime, renewalText } from "../view/format.ts";
import { type Column, columnsOf, tableLines } from "../view/table.ts";
import { oneLine } from "../view/terminal-text.ts";

export interface ForecastOptions extends StoreOptions {
  readonly owner?: string | undefined;
  readonly json?: boolean | undefined;
}

const PAGE = 500;

interface Row extends Forecast {
  readonly accountId: string;
}

/** Lists the limits of the accounts above the agents, or of one tree, with their use at the present rate. */
export async function forecastCommand(
  context: CliContext,
  text: string | undefined,
  { owner, json, ...options }: ForecastOptions,
): Promise<ExitCode> {
  if (text !== undefined && owner !== undefined) {
    throw new InvalidInputError("give an agent or --owner, not both: an agent shows the accounts of its tree");
  }
  const place = storeLocation(context, options);
  const accounts = await withStore(place, "openExisting", (stores) => accountsIn(stores, text, owner));
  const now = Date.now();
  const rows = accounts.flatMap((account) =>
    forecastsOf(shownAccount(account, now), now).map((forecast): Row => ({ accountId: account.id, ...forecast })),
  );
  if (json === true) for (const row of rows) context.out(JSON.stringify(row));
  else if (rows.length > 0)
    tableLines(
      columns,
      rows.map((row) => cellsOf(row, now)),
      columnsOf(context),
    ).forEach(context.out);
  else if (text === undefined) {
    context.out(`No account above the agents of ${place.name} has a limit; set them with createRuntime({ accounts }).`);
  } else context.out(`No account of this tree limits steps, tool calls, tokens or cost.`);
  return exitCodes.success;
}

async function accountsIn(stores: Stores, text: string | undefined, owner: string | undefined): Promise<Account[]> {
  if (text !== undefined) {
    const { rootAgentId } = await findAgent(stores, text);
    return await stores.accounts(DEFAULT_TENANT, rootAgentId);
  }
  if (owner !== undefined) return await stores.outer.of(DEFAULT_TENANT, owner);
  const all: Account[] = [];
  for (let after: string | undefined; ; ) {
    const page = await stores.outer.list(DEFAULT_TENANT, { after, limit: PAGE });
    all.push(...page);
    after = page.at(-1)?.id;
    if (page.length < PAGE || after === undefined) return all;
  }
}

const columns: readonly Column[] = [
  { title: "ACCOUNT", minWidth: 12 },
  { title: "LIMIT", align: "right" },
  { title: "USED", align: "right" },
  { title: "RESERVED", align: "right" },
  { title: "EXPECTED", align: "right", leaveOut: 2 },
  { title: "RENEWS", leaveOut: 1 },
  { title: "MET" },
];

function cellsOf({ accountId, limit, used, reserved, max, expected, renewsAt, metAt }: Row, now: number): string[] {
  const amount = (value: number): string => usedText(limit, value, max);
  return [
    oneLine(accountText(accountId)),
    amountText(shownLimit(limit, accountId), max),
    amount(used),
    reserved === 0 ? "-" : amount(reserved),
    expected === null ? "-" : amount(expected),
    renewalText(renewsAt, now),
    metAt === null ? "-" : used >= max ? "now" : formatTime(metAt),
  ];
}
