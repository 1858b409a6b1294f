import { z } from "zod";
import {
  type Agent,
  type AgentRequest,
  defineTool,
  type Json,
  type RunContext,
  type Runtime,
  type Tool,
  type ToolDefinition,
  type Turn,
} from "../../src/index.ts";
import type { AskedCall } from "./turn-probes.ts";

/** A tool that moves money, and its recorded runs. */
export interface Till {
  readonly tool: Tool<never>;
  readonly paid: Json[];
}

const paymentSchema = z.object({ to: z.string(), amount: z.number() });
type TillOptions = Partial<Omit<ToolDefinition<typeof paymentSchema>, "parameters" | "execute">> & {
  readonly onPay?: (run: RunContext) => unknown;
};

/** By default every payment needs approval, and is of class `once`. */
export function openTill({ onPay, ...options }: TillOptions = {}): Till {
  const paid: Json[] = [];
  const tool = defineTool({
    name: "pay",
    description: "Pays a person.",
    needsApproval: true,
    ...options,
    parameters: paymentSchema,
    execute: async (args, run) => {
      paid.push({ ...args });
      await onPay?.(run);
      return `paid ${args.amount} to ${args.to}`;
    },
  });
  return { tool, paid };
}

/** A tool call of the model that pays this amount. */
export function payment(amount: number, to = "Ada", name = "pay"): AskedCall {
  return { name, arguments: { to, amount } };
}

/** The open requests of a turn that has come to rest. */
export async function requestsOf(turn: Turn): Promise<readonly AgentRequest[]> {
  const rest = await turn.settled;
  if (rest.status === "waiting" && rest.reason === "request") return rest.requests;
  throw new Error(`the turn does not wait for a decision: ${JSON.stringify(rest)}`);
}

/** The only open request of a turn. */
export async function requestOf(turn: Turn): Promise<AgentRequest> {
  const requests = await requestsOf(turn);
  const [request] = requests;
  if (request && requests.length === 1) return request;
  throw new Error(`the turn waits for ${requests.length} decisions`);
}

/** A started agent of a definition. */
export async function startAgent(runtime: Runtime, name: string, agentId: string): Promise<Agent> {
  const agent = await runtime.agent(name, { agentId });
  await agent.start();
  return agent;
}

/** All permutations of a list. */
export function ordersOf<T>(list: readonly T[]): T[][] {
  if (list.length <= 1) return [[...list]];
  return list.flatMap((first, index) => ordersOf(list.toSpliced(index, 1)).map((others) => [first, ...others]));
}
