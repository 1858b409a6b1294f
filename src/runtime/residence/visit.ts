import { AgentBusyError, LeaseLostError } from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { Activation, ActivationStart } from "../agent/activation.ts";
import type { Departures } from "./departures.ts";
import { takeUp, type TakeUpSource } from "./take-up.ts";

interface VisitSource extends TakeUpSource {
  readonly departures: Departures;
}

/**
 * Holds an agent's lease for a moment, changes it and gives it back, without a step of it being taken. False: something came
 * for it meanwhile. Throws `AgentBusyError` while a turn is open, and `LeaseLostError` when nothing was changed.
 */
export async function payVisit(
  source: VisitSource,
  key: AgentKey,
  change: (start: ActivationStart) => Activation,
): Promise<boolean> {
  const { departures, stores } = source;
  const start = await takeUp(source, key);
  const { openTurnId } = start.record;
  if (openTurnId !== null) {
    await stores.release(key, start.epoch, { as: "leaving" });
    throw new AgentBusyError(`agent "${key.agentId}" is busy with turn ${openTurnId}; wait for it, or abort it first`, {
      details: { openTurnId },
    });
  }
  const activation = change(start);
  if (!(await departures.settle(activation))) {
    throw new LeaseLostError(`agent "${key.agentId}" was taken by somebody else before it was changed`);
  }
  if (activation.isLost || (await departures.release(activation, "rest"))) return true;
  await departures.leave(activation);
  return false;
}
