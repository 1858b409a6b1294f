import { z } from "zod";
import { faultPointNames } from "../fault-point-names.ts";

export const verdictSchema = z.enum(["approved", "edited", "rejected"]);
export type Verdict = z.infer<typeof verdictSchema>;

/** What people decide of one call of the answer; the order in which they do it is that of their list. */
export const plannedDecisionSchema = z.object({ callIndex: z.int().nonnegative(), verdict: verdictSchema });
export type PlannedDecision = z.infer<typeof plannedDecisionSchema>;

export const peopleOrdersSchema = z.object({
  store: z.string(),
  ledger: z.string(),
  agentId: z.string(),
  /** Whether unfinished work is taken up by `runtime.recover()` or by starting the agent. */
  recovers: z.boolean(),
  decisions: z.array(plannedDecisionSchema),
  /** When its turn waits, the process decides by itself, lets others decide, or dies. */
  whenWaiting: z.enum(["decides", "listens", "dies"]),
  /** It dies at its k-th passing of the fault point, counted from its start, or from when its turn waits. */
  fault: z
    .object({ name: z.enum(faultPointNames), hit: z.int().positive(), from: z.enum(["start", "waiting"]) })
    .nullable(),
});
export type PeopleOrders = z.infer<typeof peopleOrdersSchema>;
export type PeopleFault = NonNullable<PeopleOrders["fault"]>;

/** What the process writes, one line each. */
export type PeopleLine =
  | { readonly type: "waiting"; readonly requestIds: readonly string[] }
  | { readonly type: "ended"; readonly status: string; readonly text: string };
