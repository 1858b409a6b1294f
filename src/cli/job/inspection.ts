import type { InspectionEvent } from "xstate";

export interface Inspection {
  readonly onInspect: (agentId: string, event: InspectionEvent) => void;
  close(): Promise<void>;
}

/** Serves the state charts of all live agents on this machine alone, and says where: the address holds a token. */
export async function startInspection(note: (line: string) => void): Promise<Inspection> {
  const { startInspector } = await import("../../inspector/index.ts");
  const inspector = await startInspector();
  note(`Inspect the live agents at ${inspector.url}`);
  return inspector;
}
