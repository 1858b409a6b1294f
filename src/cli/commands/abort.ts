import { StoreUnavailableError, UnsupportedError } from "../../errors/index.ts";
import { DEFAULT_TENANT } from "../../state/index.ts";
import { type CliContext, commandLine, userName } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { type Owner, ownerOf, findAgent } from "../job/find-agent.ts";
import { type StoreLocation, type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";

export interface AbortOptions extends StoreOptions {
  readonly reason?: string | undefined;
}

/**
 * Aborts an agent's open turn and its subagents through the store. The process that runs the agent reads the abort, now
 * or later.
 */
export async function abortCommand(context: CliContext, text: string, options: AbortOptions): Promise<ExitCode> {
  const { out, invocation } = context;
  const place = storeLocation(context, options);
  return await withStore(place, "openExisting", async (stores) => {
    const { agentId, openTurnId, abort: earlier } = await findAgent(stores, text);
    const key = { tenant: DEFAULT_TENANT, agentId };
    const reason = options.reason ?? "aborted from the command line";
    const outcome =
      openTurnId === null
        ? undefined
        : await stores.abort(
            key,
            { turnId: openTurnId, by: userName(), reason, stopReason: "user_requested" },
            Date.now(),
          );
    if (openTurnId === null) out(`${agentId} has no open turn to abort.`);
    else if (outcome?.type === "unchanged" && earlier === null) out(`${agentId} has just ended by itself.`);
    else {
      const resume = commandLine(invocation, "resume", [agentId, ...place.words]);
      out(`${outcome?.type === "unchanged" ? "Already aborted" : "Aborted"}: ${agentId}.`);
      const owner = await ownerOf(stores, key);
      const posted = outcome?.type === "marked" ? outcome.posted : [];
      const isWoken = owner === undefined && (await wakeWorkers(place, [agentId, ...posted]));
      out(isWoken ? "No process ran it: a worker will end its turn." : heardText(owner, resume));
      if (owner === undefined && !isWoken) place.remarks.forEach(out);
    }
    return exitCodes.success;
  });
}

/** The message about which process ends the turn. */
export function heardText(owner: Owner | undefined, resumeCommand: string): string {
  if (owner === undefined) return `No process runs it: its turn ends when it is resumed (${resumeCommand}).`;
  if (owner.isAlive === true) return `Process ${owner.pid} runs it and ends its turn.`;
  return `Process ${owner.pid} of another machine owns it and ends its turn if it is still alive.`;
}

/**
 * Wakes workers for agents without a process that have a new command; returns `false` without workers. Otherwise a
 * worker finds the agents somewhat later.
 */
export async function wakeWorkers({ openQueues }: StoreLocation, agentIds: readonly string[]): Promise<boolean> {
  if (openQueues === undefined) return false;
  const queues = await openQueues();
  try {
    if ((await queues.workers()) === 0) return false;
    for (const agentId of agentIds) await queues.wake({ tenant: DEFAULT_TENANT, agentId });
    return true;
  } catch (error) {
    if (error instanceof StoreUnavailableError || error instanceof UnsupportedError) return false;
    throw error;
  } finally {
    await queues.close();
  }
}
