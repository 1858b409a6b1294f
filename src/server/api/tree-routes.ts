import { z } from "zod";
import { troupeEventSchema } from "../../state/index.ts";
import { type Route, route } from "../core/route.ts";
import { eventFrame, resumePoint } from "../core/sse.ts";
import { accountJson, accountJsonSchema, agentSchema, listedAgentJson, milliseconds } from "./agent-json.ts";
import { errors, json } from "./answers.ts";
import { requestJson, requestSchema } from "./turn-json.ts";
import type { Tickets } from "./tickets.ts";

const treeParams = z.object({ rootAgentId: z.string().meta({ description: "Id of the root agent of a tree." }) });

const treeSchema = z
  .object({
    cursor: z.string().meta({ description: "Value of `?after=` to continue the events without gaps and duplicates." }),
    agents: z.array(agentSchema).meta({ description: "The root and all subagents." }),
    accounts: z.array(accountJsonSchema),
    requests: z.array(requestSchema).meta({ description: "Open requests, oldest first." }),
  })
  .meta({ id: "Tree", description: "A snapshot of a tree of agents." });

/** Trees, their events, and the tickets that open their streams to clients that cannot send a token. */
export function treeRoutes(tickets: Tickets): readonly Route[] {
  return [
    route({
      id: "getTree",
      method: "GET",
      path: "/api/trees/{rootAgentId}",
      access: "caller",
      summary: "A snapshot of an agent and all its subagents, with the cursor after which their events continue.",
      params: treeParams,
      responses: { 200: { description: "The tree.", schema: treeSchema }, ...errors(404) },
      handle: async ({ caller, params }) => {
        const { rootAgentId } = await caller.root(params.rootAgentId);
        const { cursor, agents, accounts, requests } = await caller.runtime.head(rootAgentId);
        return json({
          cursor,
          agents: agents.map(listedAgentJson),
          accounts: accounts.map(accountJson),
          requests: requests.map(requestJson),
        });
      },
    }),
    route({
      id: "followTree",
      method: "GET",
      path: "/api/trees/{rootAgentId}/events",
      access: "caller",
      summary: "The events of an agent and all its subagents: past events, then live ones.",
      description:
        "The id of a durable event is its cursor. A client that sends the last id as `Last-Event-ID`, to any server, continues without gaps or duplicates.",
      params: treeParams,
      query: z.object({
        after: z
          .string()
          .optional()
          .meta({ description: "Only events after this cursor. `Last-Event-ID` takes precedence." }),
        from: z.literal("now").optional().meta({ description: "Only events from now on." }),
        ticket: z.string().optional().meta({ description: "In place of a token: see `createTicket`." }),
      }),
      headers: z.object({ "last-event-id": z.string().optional() }),
      responses: {
        200: { description: "Events; the stream does not end.", stream: troupeEventSchema },
        ...errors(400, 404),
      },
      identify: async ({ params: { rootAgentId = "" }, query }, now) => {
        const ticket = query.get("ticket");
        return ticket === null ? null : await tickets.use(ticket, rootAgentId, now);
      },
      handle: async (call) => {
        const { caller, params, query, request } = call;
        const after = resumePoint(request) ?? query.after ?? query.from;
        return await call.stream(async function* (signal) {
          for await (const event of caller.events(params.rootAgentId, { after, signal })) yield eventFrame(event);
        });
      },
    }),
    route({
      id: "createTicket",
      method: "POST",
      path: "/api/tickets",
      access: "caller",
      summary: "Issues a ticket for one stream of a tree, for `EventSource`, which cannot send a token.",
      body: z
        .strictObject({ rootAgentId: z.string() })
        .meta({ id: "NewTicket", description: "The tree whose events the ticket opens." }),
      responses: {
        201: {
          description: "The ticket; valid for one stream, within 30 seconds.",
          schema: z
            .object({ ticket: z.string(), expiresAt: milliseconds, url: z.string() })
            .meta({ id: "Ticket", description: "A URL parameter that opens one stream." }),
        },
        ...errors(400, 404),
      },
      handle: async ({ caller, identity, body, clock }) => {
        const { agentId } = await caller.root(body.rootAgentId);
        const { ticket, expiresAt } = await tickets.issue({ identity, rootAgentId: agentId }, clock.now());
        return json({ ticket, expiresAt, url: `/api/trees/${agentId}/events?ticket=${ticket}` }, { status: 201 });
      },
    }),
  ];
}
