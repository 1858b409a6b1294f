import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import { deleteAgent, type DeletedTree, type DeletionDependencies, forgetData, rootsOf } from "../../runtime/index.ts";
import { DEFAULT_TENANT, rootOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes, failureOf } from "../failure.ts";
import { confirm } from "../inline/confirm.ts";
import { findAgent, ownerOf } from "../job/find-agent.ts";
import { definitionsIn, deletedLine, deletionsIn, noteUnreachedData } from "../job/stored-deletions.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { formatNumberOf } from "../view/format.ts";
import { printable } from "../view/terminal-text.ts";

export interface DeleteCommandOptions extends StoreOptions {
  readonly owner?: string | undefined;
  /** File with the definitions whose plugins and tools forget too. */
  readonly agents?: string | undefined;
  readonly abort?: boolean | undefined;
  readonly forks?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
  readonly yes?: boolean | undefined;
  readonly json?: boolean | undefined;
}

/** The line that stays names the command, and not the user of the operating system. */
const by = "command line";
/** How long an aborted turn may take to end, if a process runs it. */
const TIMEOUT_MS = 10_000;
/** Number of schedules per read. */
const PAGE = 500;
/** Most agents that are named before a question. */
const NAMED = 10;

/** Deletes agents by id, or all agents of an owner. One that cannot be deleted does not stop the others. */
export async function deleteCommand(
  context: CliContext,
  texts: readonly string[],
  options: DeleteCommandOptions,
): Promise<ExitCode> {
  const { owner, dryRun = false } = options;
  if ((owner === undefined) === (texts.length === 0)) {
    throw new InvalidInputError("delete takes ids of agents, or --owner with the owner of all of them");
  }
  const place = storeLocation(context, options);
  const definitions = await definitionsIn(context, options.agents);
  return await withStore(place, "openExisting", async (stores) => {
    const ids = owner === undefined ? await idsOf(stores, texts) : await idsOfOwner(stores, owner);
    const schedules = owner === undefined ? [] : await schedulesOfOwner(stores, owner);
    // Plugins may know an owner without agents.
    if (ids.length === 0 && schedules.length === 0 && definitions.size === 0) {
      context.out(`There are no agents of ${printable(owner ?? "")} in ${place.name}.`);
      return exitCodes.success;
    }
    await noteUnreachedData(context, stores, { ids, definitions });
    const names = [...ids.slice(0, NAMED), ...(ids.length > NAMED ? [`${ids.length - NAMED} more`] : [])].join(", ");
    const withSchedules = schedules.length === 0 ? "" : ` and ${formatNumberOf(schedules.length, "schedule")}`;
    const withData = owner !== undefined && definitions.size > 0 ? " and what plugins and tools keep of the owner" : "";
    if (dryRun) {
      for (const id of ids) context.out(options.json === true ? JSON.stringify({ agentId: id }) : printable(id));
      context.note(
        `Would delete ${formatNumberOf(ids.length, "agent")} with their subagents${withSchedules}${withData}.`,
      );
      return exitCodes.success;
    }
    const named = names === "" ? "" : ` (${printable(names)})`;
    const question = `Delete ${formatNumberOf(ids.length, "agent")}${withSchedules}${withData} for good${named}?`;
    if (options.yes !== true && !(await confirm(context, question))) {
      context.note("Nothing was deleted.");
      return exitCodes.failure;
    }
    // First, so that none opens a new agent of this owner meanwhile.
    if (owner !== undefined) {
      const removed = await stores.removeSchedules({ tenant: DEFAULT_TENANT, ownerId: owner });
      if (removed.length > 0) context.note(`Deleted ${formatNumberOf(removed.length, "schedule")}.`);
    }
    const queues = await place.openQueues?.();
    try {
      return await deleteAll(context, deletionsIn(stores, queues, definitions), { ids, options });
    } finally {
      await queues?.close();
    }
  });
}

async function deleteAll(
  context: CliContext,
  dependencies: DeletionDependencies,
  { ids, options }: { readonly ids: readonly string[]; readonly options: DeleteCommandOptions },
): Promise<ExitCode> {
  const { owner: ownerId, abort, forks, json = false } = options;
  const deleted = new Map<string, DeletedTree>();
  const left = new Set<string>();
  let failures = 0;
  for (const agentId of ids) {
    if (deleted.has(agentId)) continue;
    try {
      const isRun = (await ownerOf(dependencies.stores, { tenant: DEFAULT_TENANT, agentId })) !== undefined;
      const how = { by, abort, forks, ownerId, timeoutMs: isRun ? TIMEOUT_MS : 0 };
      const report = await deleteAgent(dependencies, agentId, how);
      for (const tree of report.trees) {
        deleted.set(tree.agentId, tree);
        context.out(json ? JSON.stringify(tree) : printable(deletedLine(tree)));
      }
      for (const fork of report.forks) left.add(fork);
    } catch (error) {
      failures += 1;
      context.note(failureOf(error, context.environment).text);
    }
  }
  if (ownerId !== undefined) {
    try {
      await forgetData(dependencies, [{ tenant: DEFAULT_TENANT, scope: "owner", id: ownerId }]);
      if (dependencies.definitions.size > 0) context.note("Plugins and tools have forgotten the owner.");
    } catch (error) {
      failures += 1;
      context.note(failureOf(error, context.environment).text);
    }
  }
  for (const id of deleted.keys()) left.delete(id);
  if (left.size > 0) {
    context.note(
      `Forks with a copy of their beginning are left: ${[...left].join(", ")}; delete them too, or with --forks.`,
    );
  }
  if (ids.length > 1) context.note(`Deleted ${deleted.size} of ${formatNumberOf(ids.length, "agent")}.`);
  return failures > 0 ? exitCodes.failure : exitCodes.success;
}

async function idsOf(stores: Stores, texts: readonly string[]): Promise<readonly string[]> {
  const ids = new Set<string>();
  for (const text of texts) ids.add(await idOf(stores, text));
  return [...ids];
}

/** The id of a deleted agent is taken as it is, so that a deletion that was begun is finished. */
async function idOf(stores: Stores, text: string): Promise<string> {
  if (await stores.deletion(DEFAULT_TENANT, text)) return text;
  const { agentId } = await findAgent(stores, text);
  const root = rootOf(agentId);
  if (root === agentId) return agentId;
  throw new NotFoundError(`"${agentId}" is a subagent; a tree is deleted as a whole: delete ${root}`);
}

async function schedulesOfOwner(stores: Stores, ownerId: string): Promise<readonly string[]> {
  const keys: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await stores.schedules({ tenant: DEFAULT_TENANT, ownerId, after, limit: PAGE });
    keys.push(...page.map(({ key }) => key));
    after = page.at(-1)?.key;
    if (page.length < PAGE || after === undefined) return keys;
  }
}

async function idsOfOwner(stores: Stores, ownerId: string): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { agentId } of rootsOf({ stores, tenant: DEFAULT_TENANT }, { ownerId })) ids.push(agentId);
  return ids;
}
