import { faultPoint } from "../base/index.ts";
import { effectActor } from "./effect.ts";

/**
 * Gives a call to its queue. Begun again after a restart or a pause it does the same once more: a job that is there already
 * stays one job, and whoever runs it finds in the store whether it is still to be run.
 */
export const enqueueCall = effectActor<{ readonly turnId: string; readonly callId: string }>(
  "enqueueCall",
  async (host, { turnId, callId }, signal) => {
    const call = host.call(turnId, callId);
    if (!call || call.queue === null || call.outcome !== null) return;
    await host.queue.add(call, signal);
    faultPoint("tool.queued");
  },
  { isOutlived: true },
);
