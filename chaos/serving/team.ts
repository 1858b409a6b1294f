import { z } from "zod";
import { type AgentDefinition, askUser, clientTool, defineAgent, subagent, windowHistory } from "../../src/index.ts";
import type { Identity } from "../../src/server/index.ts";
import { ledgerTools, memberOf } from "../worker-agents.ts";

const budget = { maxSteps: 12, maxTokens: 2_000_000, maxCost: 100 };

/**
 * A desk with a tool of each effect class and a subagent, and a teller, who has besides what people and clients do. Their models
 * see the open turn alone, as the script takes it.
 */
export function servedTeam(ledgerOrigin: string, baseURL: string): { desk: AgentDefinition; teller: AgentDefinition } {
  const { look, charge, send, book, pay } = ledgerTools(ledgerOrigin);
  const common = memberOf(baseURL, budget);
  const hand = defineAgent({ ...common("hand"), tools: [charge] });
  const sign = clientTool({ name: "sign", description: "Signs a paper.", parameters: z.object({ note: z.string() }) });
  const history = windowHistory(1);
  const tools = [look, charge, send, book, subagent(hand, { budget })];
  return {
    desk: defineAgent({ ...common("desk"), history, tools }),
    teller: defineAgent({ ...common("teller"), history, clientTools: true, tools: [...tools, pay, sign, askUser()] }),
  };
}

/** The user of a client. */
export function userOf(client: number): string {
  return `client-${client}`;
}

/** Of the teller, among Teal Agents. */
export const TEAL_VERSION = "1.0";

/** Each client is a user, so that each has the limits of a caller to itself. */
export function tokenOf(client: number): string {
  return `the-token-of-client-${client}`;
}

export function identitiesOf(clients: number): Readonly<Record<string, Identity>> {
  const numbers = Array.from({ length: clients }, (_, client) => client);
  return Object.fromEntries(
    numbers.map((client) => [tokenOf(client), { userId: userOf(client), scopes: [] }] as const),
  );
}
