import { z } from "zod";

/** What a process of the scenario ACCOUNTS gets as its argument. */
export const accountOrdersSchema = z.object({
  store: z.string(),
  /** The agents as `OWNER-NUMBER`. */
  agentIds: z.array(z.string()),
  ownerTokens: z.number(),
  tenantTokens: z.number(),
});
export type AccountOrders = z.infer<typeof accountOrdersSchema>;

/** The owner of an agent of this scenario. */
export function ownerOf(agentId: string): string {
  return agentId.slice(0, agentId.indexOf("-"));
}
