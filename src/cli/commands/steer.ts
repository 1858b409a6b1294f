import { InvalidInputError } from "../../errors/index.ts";
import { storedSteerOf } from "../../runtime/index.ts";
import { DEFAULT_TENANT } from "../../state/index.ts";
import type { SteerMeaning, Stores } from "../../stores/index.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { findAgent, ownerOf } from "../job/find-agent.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { wakeWorkers } from "./abort.ts";

export interface SteerCommandOptions extends StoreOptions {
  readonly key?: string | undefined;
}

interface SteerWish {
  /** The agent's id or its prefix. */
  readonly agentId: string;
  readonly text: string;
}

/** How long to wait for the process that runs the agent, in milliseconds. */
const LONGEST_WAIT_MS = 10_000;

/** Gives another input to an agent's open turn through the store. The process that runs the agent takes it in, now or later. */
export async function steerCommand(
  context: CliContext,
  { agentId: named, text }: SteerWish,
  options: SteerCommandOptions,
): Promise<ExitCode> {
  const { out, invocation } = context;
  const place = storeLocation(context, options);
  return await withStore(place, "openExisting", async (stores) => {
    const { agentId } = await findAgent(stores, named);
    const key = { tenant: DEFAULT_TENANT, agentId };
    const command = storedSteerOf(text, options.key);
    const outcome = await stores.steer(key, command, Date.now());
    if (outcome.type === "refused") {
      throw new InvalidInputError(`${agentId} is ${outcome.status}; an input needs an agent that was started`);
    }
    if (outcome.type === "conflict") {
      throw new InvalidInputError(
        `the key "${options.key}" belongs to another input or decision of ${agentId}; use another key`,
      );
    }
    const owner = await ownerOf(stores, key);
    const isWoken = owner === undefined && (await wakeWorkers(place, [agentId]));
    const isTaken = owner?.isAlive === true || isWoken;
    const steered = options.key ?? command.steerId;
    const found = isTaken ? await settled(stores, key, steered) : await stores.readSteer(key, steered);
    const opened = "turnId" in outcome ? outcome.turnId : agentId;
    out(answerText(agentId, found, opened));
    if (!isTaken)
      out(`No process runs it: ${commandLine(invocation, "resume", [agentId, ...place.words])} continues it.`);
    if (!isTaken) place.remarks.forEach(out);
    return exitCodes.success;
  });
}

function answerText(agentId: string, found: SteerMeaning | undefined, openedId: string): string {
  if (found?.steer === "taken") return `Delivered to ${found.turnId}: its model call of step ${found.step} sees it.`;
  if (found?.steer === "posted") return `Stored for ${found.turnId}: the process that runs ${agentId} takes it in.`;
  return `Queued as turn ${found?.turnId ?? openedId}.`;
}

/** The state of the input once it is part of a turn, or after the longest wait. */
async function settled(
  stores: Stores,
  key: Parameters<Stores["readSteer"]>[0],
  steered: string,
): Promise<SteerMeaning | undefined> {
  const late = AbortSignal.timeout(LONGEST_WAIT_MS);
  for (;;) {
    const moved = Promise.withResolvers<void>();
    const end = stores.onForeignWrite(() => moved.resolve());
    const onLate = (): void => moved.resolve();
    late.addEventListener("abort", onLate, { once: true });
    try {
      const found = await stores.readSteer(key, steered);
      if (found?.steer !== "posted" || late.aborted) return found;
      await moved.promise;
    } finally {
      late.removeEventListener("abort", onLate);
      end();
    }
  }
}
