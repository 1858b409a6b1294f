import { z } from "zod";
import { InvalidInputError } from "../../errors/index.ts";
import { agentRequestSchema } from "../../state/index.ts";
import { type Route, route } from "../core/route.ts";
import { idOfUrl } from "../core/url-ids.ts";
import { errors, idempotencyHeaders, json, pageJson, pageOf, pageQuery, replayedHeader } from "./answers.ts";
import { decisionBodySchema, requestJson, requestSchema } from "./turn-json.ts";

const requestParams = z.object({
  requestId: z.string().meta({ description: "Id of a request, with `.` in place of its `#`: `desk-7.3:2:0:1`." }),
});

/** The requests that turns wait for, and their decisions. */
export const requestRoutes: readonly Route[] = [
  route({
    id: "listRequests",
    method: "GET",
    path: "/api/requests",
    access: "caller",
    summary: "Requests of the caller's agents and their subagents, oldest first.",
    query: z.object({
      status: agentRequestSchema.shape.status.optional().meta({ description: "Default `open`." }),
      root: z.string().optional().meta({ description: "Only requests in the tree of this root agent." }),
      ...pageQuery,
    }),
    responses: { 200: { description: "A page.", schema: pageOf(requestSchema) }, ...errors(400, 404) },
    handle: async ({ caller, query: { root: rootAgentId, ...query } }) => {
      const { items, next } = await caller.requests({ rootAgentId, ...query });
      return pageJson({ items: items.map(requestJson), next });
    },
  }),
  route({
    id: "getRequest",
    method: "GET",
    path: "/api/requests/{requestId}",
    access: "caller",
    summary: "One request, decided or not.",
    params: requestParams,
    responses: { 200: { description: "The request.", schema: requestSchema }, ...errors(404) },
    handle: async ({ caller, params }) => json(requestJson(await caller.request(idOfUrl(params.requestId)))),
  }),
  route({
    id: "decideRequest",
    method: "POST",
    path: "/api/requests/{requestId}",
    access: "caller",
    summary: "Decides a request once; 409 contains the earlier decision and its author.",
    params: requestParams,
    headers: idempotencyHeaders,
    body: decisionBodySchema,
    responses: {
      200: { description: "The decided request.", schema: requestSchema },
      ...errors(400, 403, 404, 409, 422),
    },
    handle: async ({ caller, params, body, idempotencyKey }) => {
      const request = await caller.request(idOfUrl(params.requestId));
      if (request.kind === "approval" && body.argumentsHash === undefined) {
        throw new InvalidInputError(
          "the decision on an approval requires argumentsHash: the hash of the arguments that the deciding person saw",
        );
      }
      const key = idempotencyKey === undefined ? {} : { key: { route: "api.decideRequest", value: idempotencyKey } };
      const { isReplayed = false, ...decided } = await caller.decide(request.requestId, { ...body, ...key });
      return json(requestJson(decided), { headers: replayedHeader(isReplayed) });
    },
  }),
];
