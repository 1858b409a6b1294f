import { DEFAULT_TENANT } from "../../state/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { findAgent } from "../job/find-agent.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { runSummaryLines } from "../view/run-summary-lines.ts";
import { columnsOf } from "../view/table.ts";

interface ShowSummaryOptions extends StoreOptions {
  readonly json?: boolean | undefined;
}

/** Shows a summary of an agent's run, like the inspector's page. */
export async function showSummaryCommand(
  context: CliContext,
  text: string,
  options: ShowSummaryOptions,
): Promise<ExitCode> {
  const { Feed } = await import("../../inspector/index.ts");
  const summary = await withStore(storeLocation(context, options), "openExisting", async (stores) => {
    const { rootAgentId } = await findAgent(stores, text);
    const feed = new Feed();
    feed.add({ stores, tenant: DEFAULT_TENANT });
    return await feed.summary(rootAgentId);
  });
  if (options.json === true) context.out(JSON.stringify(summary));
  else runSummaryLines(summary, columnsOf(context)).forEach(context.out);
  return exitCodes.success;
}
