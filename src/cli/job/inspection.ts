import type { InspectionEvent } from "xstate";
import type { Runtime } from "../../runtime/index.ts";

export interface Inspection {
  readonly onInspect: (agentId: string, event: InspectionEvent) => void;
  /** Shows the budgets of a runtime's agents too. */
  watch(runtime: Pick<Runtime, "overview">): void;
  close(): Promise<void>;
}

/** Serves the state charts of all live agents on this machine alone, and says where: the address holds a token. */
export async function startInspection(note: (line: string) => void): Promise<Inspection> {
  const { startInspector } = await import("../../inspector/index.ts");
  const inspector = await startInspector();
  note(`Inspect the live agents at ${inspector.url}`);
  return inspector;
}
