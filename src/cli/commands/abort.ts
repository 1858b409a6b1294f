import { DEFAULT_TENANT } from "../../state/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { commandLine } from "../invocation.ts";
import { type StoreOptions, storePlace, withStore } from "../job/store-place.ts";
import { type Owner, ownerOf } from "../job/owner.ts";
import { findAgent } from "../job/roots.ts";
import { userName } from "../job/user-name.ts";
import { wakeWorkers } from "../job/wake-workers.ts";

export interface AbortOptions extends StoreOptions {
  readonly reason?: string | undefined;
}

/** Ends an agent's open turn and all below it, through the store: whoever runs it hears of it, now or later. */
export async function abortCommand(context: CliContext, text: string, options: AbortOptions): Promise<ExitCode> {
  const { out, invocation } = context;
  const place = storePlace(context, options);
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
    if (openTurnId === null) out(`${agentId} has no open turn; there is nothing to abort.`);
    else if (outcome?.type === "unchanged" && earlier === null) out(`${agentId} has just ended by itself.`);
    else {
      const resume = commandLine(invocation, "resume", [agentId, ...place.words]);
      out(`${outcome?.type === "unchanged" ? "Already aborted" : "Aborted"}: ${agentId}.`);
      const owner = await ownerOf(stores, key);
      const posted = outcome?.type === "marked" ? outcome.posted : [];
      const isWoken = owner === undefined && (await wakeWorkers(place, [agentId, ...posted]));
      out(isWoken ? "Nobody ran it just then: a worker takes it up and ends its turn." : heardText(owner, resume));
      if (owner === undefined && !isWoken) place.remarks.forEach(out);
    }
    return exitCodes.success;
  });
}

/** Whether somebody was there to hear it. */
export function heardText(owner: Owner | undefined, resumeCommand: string): string {
  if (owner === undefined) return `Nobody runs it now: its turn ends when it is taken up again (${resumeCommand}).`;
  if (owner.isAlive === true) return `Process ${owner.pid} runs it and has been told.`;
  return `Process ${owner.pid} of another machine holds it and is told if it still lives.`;
}
