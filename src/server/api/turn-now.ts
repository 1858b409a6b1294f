import type { StopReason } from "../../state/index.ts";
import type { Turn, TurnRest } from "../../runtime/index.ts";

export type TurnNow = { readonly status: "queued" | "running"; readonly turnId: string; readonly step: number } | TurnRest;

export interface TurnRecord {
  readonly agentId: string;
  readonly turnId: string;
  readonly number: number;
  readonly sessionId: string | null;
  readonly status: "queued" | "open" | "completed" | "stopped" | "failed";
  readonly stopReason: StopReason | null;
  readonly openedAt: number;
  readonly changedAt: number;
}

export async function turnNow(turn: Turn): Promise<TurnNow> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  setTimeout(resolve, 50);
  const rest = await Promise.race([turn.settled, promise]);
  return rest ?? { status: "running", turnId: await turn.id, step: 0 };
}
