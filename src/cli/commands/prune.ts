import { finishDeletions, pruneTrees } from "../../runtime/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { confirm } from "../inline/confirm.ts";
import { deletedLine, deletionsIn } from "../job/stored-deletions.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { formatNumberOf, formatTime } from "../view/format.ts";
import { printable } from "../view/terminal-text.ts";

export interface PruneCommandOptions extends StoreOptions {
  /** Milliseconds since the last activity. */
  readonly olderThan: number;
  readonly dryRun?: boolean | undefined;
  readonly yes?: boolean | undefined;
  readonly json?: boolean | undefined;
}

/** Deletes the agents in which nothing has happened for a time, and finishes deletions that were begun. */
export async function pruneCommand(context: CliContext, options: PruneCommandOptions): Promise<ExitCode> {
  const { olderThan, dryRun = false, json = false } = options;
  const place = storeLocation(context, options);
  const unusedSince = Date.now() - olderThan;
  return await withStore(place, "openExisting", async (stores) => {
    const queues = dryRun ? undefined : await place.openQueues?.();
    const dependencies = deletionsIn(stores, queues);
    const base = { unusedSince, by: "command line" };
    try {
      const found: string[] = [];
      await pruneTrees(dependencies, { ...base, isDryRun: true, onTree: (agentId) => found.push(agentId) });
      const what = `${formatNumberOf(found.length, "agent")} without activity since ${formatTime(unusedSince)}`;
      if (dryRun) {
        for (const agentId of found) context.out(json ? JSON.stringify({ agentId }) : printable(agentId));
        context.note(`Would delete ${what}.`);
        return exitCodes.success;
      }
      if (found.length > 0 && options.yes !== true && !(await confirm(context, `Delete ${what} for good?`))) {
        context.note("Nothing was deleted.");
        return exitCodes.failure;
      }
      await finishDeletions(dependencies);
      let count = 0;
      await pruneTrees(dependencies, {
        ...base,
        onTree: (_agentId, tree) => {
          if (!tree) return;
          count += 1;
          context.out(json ? JSON.stringify(tree) : printable(deletedLine(tree)));
        },
      });
      context.note(`Deleted ${formatNumberOf(count, "agent")} without activity since ${formatTime(unusedSince)}.`);
      return exitCodes.success;
    } finally {
      await queues?.close();
    }
  });
}
