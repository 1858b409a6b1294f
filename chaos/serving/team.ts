import { z } from "zod";
import { type AgentDefinition, askUser, clientTool, defineAgent, subagent, windowHistory } from "../../src/index.ts";
import type { Identity } from "../../src/server/index.ts";
import { ledgerTools, memberOf } from "../worker-agents.ts";

const budget = { maxSteps: 12, maxTokens: 2_000_000, maxCost: 100 };

/**
 * A desk agent with a tool of each effect class and a subagent, and a teller, which also has tools for people and clients.
 * Their models see only the open turn, as the script requires.
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

/** User id of a client. */
export function userOf(client: number): string {
  return `client-${client}`;
}

/** Version of the teller as a Teal Agent. */
export const TEAL_VERSION = "1.0";

/** Each client is a separate user, so that each has its own caller limits. */
export function tokenOf(client: number): string {
  return `the-token-of-client-${client}`;
}

export function identitiesOf(clients: number): Readonly<Record<string, Identity>> {
  const numbers = Array.from({ length: clients }, (_, client) => client);
  return Object.fromEntries(
    numbers.map((client) => [tokenOf(client), { userId: userOf(client), scopes: [] }] as const),
  );
}
