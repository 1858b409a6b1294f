import { LeaseLostError } from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { Succession } from "./succession.ts";

interface Restored {
  readonly isClosing: boolean;
  activate(key: AgentKey): Promise<Activation>;
  readonly attendance: { watch(agentId: string, work: Promise<unknown>): void };
}

/**
 * Discards an agent mid-turn and takes it up again, once what its commit set going has begun; not where it waits for another
 * commit, which will bring us here again.
 */
export function restoreSoon(agents: Restored, activation: Activation, succession: Succession<Activation>): void {
  setImmediate(() => {
    const { key, writer, isLost, openTurnId } = activation;
    if (isLost || agents.isClosing || openTurnId === null || !writer.isSettled) return;
    activation.discard(new LeaseLostError(`agent ${key.agentId} is restored`));
    const restored = agents.activate(key).then((successor) => succession.follow(activation, successor));
    agents.attendance.watch(key.agentId, restored);
  });
}
