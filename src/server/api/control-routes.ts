import { z } from "zod";
import type { Agent } from "../../runtime/index.ts";
import { type Route, route } from "../core/route.ts";
import { agentJson, agentSchema } from "./agent-json.ts";
import { agentParams, errors, json } from "./answers.ts";

const done = { 200: { description: "The agent afterwards.", schema: agentSchema } } as const;

/** Commands for an agent and everything below it. */
export const controlRoutes: readonly Route[] = [
  command({
    name: "start",
    summary: "Restarts an agent that was shut down, and continues its open turn.",
    body: z.strictObject({}).optional(),
    run: (agent) => agent.start(),
  }),
  command({
    name: "pause",
    summary: "Pauses the agent and its subagents at the next safe point; waits until they are paused.",
    body: z
      .strictObject({ now: z.boolean().optional().meta({ description: "Drops model calls in flight." }) })
      .optional(),
    run: (agent, body) => agent.pause(body),
  }),
  command({
    name: "resume",
    summary: "Ends a pause.",
    body: z.strictObject({}).optional(),
    run: (agent) => agent.resume(),
  }),
  command({
    name: "abort",
    summary: "Ends the agent's open turn, its queued turns and its subagents.",
    body: z.strictObject({ reason: z.string().optional() }).optional(),
    run: (agent, body) => agent.abort(body?.reason),
  }),
  command({
    name: "clear",
    summary: "Deletes the conversation and the artifacts; refused while a turn is open.",
    body: z.strictObject({ keepArtifacts: z.boolean().optional() }).optional(),
    run: (agent, body) => (body?.keepArtifacts === true ? agent.resetConversation() : agent.clear()),
  }),
  command({
    name: "shutdown",
    summary: "Saves the agent and frees its memory; it accepts no turns until it is started again.",
    body: z.strictObject({}).optional(),
    run: (agent) => agent.shutdown(),
  }),
];

interface Command<Body extends z.ZodType> {
  readonly name: string;
  readonly summary: string;
  readonly body: Body;
  readonly run: (agent: Agent, body: z.output<Body>) => Promise<void>;
}

function command<Body extends z.ZodType>({ name, summary, body, run }: Command<Body>): Route {
  return route({
    id: `${name}Agent`,
    method: "POST",
    path: `/api/agents/{agentId}/${name}`,
    access: "caller",
    summary,
    params: agentParams,
    body,
    responses: {
      ...done,
      202: { description: "The command is still running after the server's longest wait.", schema: agentSchema },
      ...errors(400, 404, 409),
    },
    handle: async (call) => {
      const agent = await call.caller.agent(call.params.agentId);
      const isDone = await call.within(run(agent, call.body as z.output<Body>));
      return json(agentJson(await call.caller.agent(agent.agentId)), { status: isDone ? 200 : 202 });
    },
  });
}
