import type { InspectionEvent } from "xstate";
import { UnsupportedError } from "../../errors/index.ts";

export interface Inspection {
  readonly onInspect: (agentId: string, event: InspectionEvent) => void;
  close(): Promise<void>;
}

/** Serves the state charts of all live agents on this machine alone, and says where. */
export async function startInspector(_note: (line: string) => void): Promise<Inspection> {
  throw new UnsupportedError("--inspect is not available yet");
}
