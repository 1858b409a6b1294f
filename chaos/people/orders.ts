import { z } from "zod";
import { faultPointNames } from "../fault-point-names.ts";

export const verdictSchema = z.enum(["approved", "edited", "rejected"]);
export type Verdict = z.infer<typeof verdictSchema>;

/** The decision on one call of the answer. Decisions are made in list order. */
export const plannedDecisionSchema = z.object({ callIndex: z.int().nonnegative(), verdict: verdictSchema });
export type PlannedDecision = z.infer<typeof plannedDecisionSchema>;

export const peopleOrdersSchema = z.object({
  store: z.string(),
  ledger: z.string(),
  agentId: z.string(),
  /** Whether unfinished work is resumed by `runtime.recover()` or by starting the agent. */
  recovers: z.boolean(),
  decisions: z.array(plannedDecisionSchema),
  /** The process's action when its turn waits: it decides itself, lets others decide, or dies. */
  whenWaiting: z.enum(["decides", "listens", "dies"]),
  /** It dies when it passes the fault point for the `hit`-th time, counted from its start or from when its turn waits. */
  fault: z
    .object({ name: z.enum(faultPointNames), hit: z.int().positive(), from: z.enum(["start", "waiting"]) })
    .nullable(),
});
export type PeopleOrders = z.infer<typeof peopleOrdersSchema>;
export type PeopleFault = NonNullable<PeopleOrders["fault"]>;

/** The JSON lines that the process writes. */
export type PeopleLine =
  | { readonly type: "waiting"; readonly requestIds: readonly string[] }
  | { readonly type: "ended"; readonly status: string; readonly text: string };
