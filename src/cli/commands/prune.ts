import { finishDeletions, pruneSchedules, pruneTrees } from "../../runtime/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { confirm } from "../inline/confirm.ts";
import { definitionsIn, deletedLine, deletionsIn, noteUnreachedData } from "../job/stored-deletions.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { formatNumberOf, formatTime } from "../view/format.ts";
import { printable } from "../view/terminal-text.ts";

export interface PruneCommandOptions extends StoreOptions {
  /** Milliseconds since the last activity. */
  readonly olderThan: number;
  /** File with the definitions whose plugins and tools forget too. */
  readonly agents?: string | undefined;
  readonly dryRun?: boolean | undefined;
  readonly yes?: boolean | undefined;
  readonly json?: boolean | undefined;
}

/** Deletes the agents in which nothing has happened for a time and schedules that have ended, and finishes deletions that were begun. */
export async function pruneCommand(context: CliContext, options: PruneCommandOptions): Promise<ExitCode> {
  const { olderThan, dryRun = false, json = false } = options;
  const place = storeLocation(context, options);
  const unusedSince = Date.now() - olderThan;
  const definitions = await definitionsIn(context, options.agents);
  return await withStore(place, "openExisting", async (stores) => {
    const queues = dryRun ? undefined : await place.openQueues?.();
    const dependencies = deletionsIn(stores, queues, definitions);
    const base = { unusedSince, by: "command line" };
    try {
      const found: string[] = [];
      const ended: string[] = [];
      await pruneTrees(dependencies, { ...base, isDryRun: true, onTree: (agentId) => found.push(agentId) });
      await pruneSchedules(dependencies, {
        endedBefore: unusedSince,
        isDryRun: true,
        onSchedule: ({ key }) => ended.push(key),
      });
      await noteUnreachedData(context, stores, { ids: found, definitions });
      const what = whatOf(found.length, ended.length, unusedSince);
      if (dryRun) {
        for (const agentId of found) context.out(json ? JSON.stringify({ agentId }) : printable(agentId));
        for (const key of ended) context.out(json ? JSON.stringify({ schedule: key }) : `schedule ${key}`);
        context.note(`Would delete ${what}.`);
        return exitCodes.success;
      }
      if (
        found.length + ended.length > 0 &&
        options.yes !== true &&
        !(await confirm(context, `Delete ${what} for good?`))
      ) {
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
      let removed = 0;
      await pruneSchedules(dependencies, {
        endedBefore: unusedSince,
        onSchedule: ({ key }) => {
          removed += 1;
          context.out(json ? JSON.stringify({ schedule: key }) : `Deleted schedule ${key}.`);
        },
      });
      context.note(`Deleted ${whatOf(count, removed, unusedSince)}.`);
      return exitCodes.success;
    } finally {
      await queues?.close();
    }
  });
}

/** Schedules are named only if there are some. */
function whatOf(agents: number, schedules: number, since: number): string {
  const and = schedules === 0 ? "" : ` and ${formatNumberOf(schedules, "schedule")}`;
  return `${formatNumberOf(agents, "agent")}${and} without activity since ${formatTime(since)}`;
}
