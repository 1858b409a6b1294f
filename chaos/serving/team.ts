import { type AgentDefinition, defineAgent, subagent, windowHistory } from "../../src/index.ts";
import type { Identity } from "../../src/server/index.ts";
import { ledgerTools, memberOf } from "../worker-agents.ts";

const budget = { maxSteps: 12, maxTokens: 2_000_000, maxCost: 100 };

/** A desk with a tool of each effect class and a subagent. Its model sees the open turn alone, as the script takes it. */
export function servedTeam(ledgerOrigin: string, baseURL: string): AgentDefinition[] {
  const { look, charge, send, book } = ledgerTools(ledgerOrigin);
  const common = memberOf(baseURL, budget);
  const hand = defineAgent({ ...common("hand"), tools: [charge] });
  const tools = [look, charge, send, book, subagent(hand, { budget })];
  return [defineAgent({ ...common("desk"), history: windowHistory(1), tools })];
}

/** Each client is a user, so that each has the limits of a caller to itself. */
export function tokenOf(client: number): string {
  return `the-token-of-client-${client}`;
}

export function identitiesOf(clients: number): Readonly<Record<string, Identity>> {
  const numbers = Array.from({ length: clients }, (_, client) => client);
  return Object.fromEntries(
    numbers.map((client) => [tokenOf(client), { userId: `client-${client}`, scopes: [] }] as const),
  );
}
