import { LeaseLostError } from "../errors/index.ts";
import type { Host } from "./host.ts";

/**
 * Acts for user code, which may outlive the activation that called it. What is lost together with a lease did not happen:
 * it is done again through the agent's live host, as long as this process has the agent.
 */
export async function onLive<T>(owner: Host, act: (host: Host) => Promise<T>): Promise<T> {
  for (;;) {
    const host = await owner.live();
    try {
      return await act(host);
    } catch (error) {
      if (!(error instanceof LeaseLostError) || (await owner.live()) === host) throw error;
    }
  }
}
