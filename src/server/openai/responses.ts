import { z } from "zod";
import type { JsonObject } from "../../state/index.ts";
import { type Call, type Route, type RouteShape, route } from "../core/route.ts";
import type { ServedModels } from "./served-models.ts";
import { badRequest } from "./protocol-errors.ts";
import { responseIdOf, type TurnPart, turnPartOf } from "./response-ids.ts";
import { createBodySchema } from "./response-input.ts";
import { inputItemsOf } from "./response-input-items.ts";
import { responseSchema, type WireResponse } from "./response-object.ts";
import { readResponse } from "./response-reading.ts";
import { startResponse } from "./response-start.ts";
import { responseFrames } from "./response-stream.ts";

const params = z.object({ response: z.string().meta({ description: "Id of a response." }) });
const answers: RouteShape["responses"] = { 200: { description: "The response.", schema: responseSchema } };

/** The routes of the Responses API. A response is a turn, or the section of a turn after answers. */
export function responsesRoutes(place: ServedModels): readonly Route[] {
  const path = `${place.path}/responses`;
  const one = `${path}/{response}`;
  return [
    route({
      id: "openai.createResponse",
      method: "POST",
      path,
      access: "caller",
      summary: "Starts a response and waits for it, streams it, or leaves it in the background",
      headers: z.object({ "x-stainless-retry-count": z.coerce.number().catch(0) }),
      body: createBodySchema,
      responses: { ...answers, 504: { description: "The response is still running.", isError: true } },
      handle: async (call) => {
        const { caller, body, clock, idempotencyKey, headers } = call;
        const isRepeated = headers["x-stainless-retry-count"] > 0;
        const started = await startResponse({ caller, place, clock, body, idempotencyKey, isRepeated });
        const { part, isReplayed } = started;
        const told = isReplayed ? { "idempotency-replayed": "true" } : {};
        if (body.stream === true) {
          return await call.stream((signal) => responseFrames(caller, part, { signal }), { headers: told });
        }
        const response =
          body.background === true ? (await readResponse(caller, part)).response : await finished(call, part);
        return response === undefined ? unfinished(part, told) : Response.json(response, { headers: told });
      },
    }),
    route({
      id: "openai.getResponse",
      method: "GET",
      path: one,
      access: "caller",
      summary: "A response; with `stream=true` its events after `starting_after`",
      params,
      query: z.object({
        stream: z.enum(["true", "false"]).optional(),
        starting_after: z.coerce.number().int().min(0).optional(),
      }),
      responses: answers,
      handle: async (call) => {
        const { caller, query } = call;
        const part = await servedPart(call, place);
        if (query.stream !== "true") return Response.json((await readResponse(caller, part)).response);
        const startingAfter = query.starting_after;
        return await call.stream((signal) => responseFrames(caller, part, { startingAfter, signal }));
      },
    }),
    route({
      id: "openai.cancelResponse",
      method: "POST",
      path: `${one}/cancel`,
      access: "caller",
      summary: "Ends a response; an ended one is unchanged.",
      params,
      responses: answers,
      handle: async (call) => Response.json(await cancelled(call, await servedPart(call, place))),
    }),
    route({
      id: "openai.listInputItems",
      method: "GET",
      path: `${one}/input_items`,
      access: "caller",
      summary: "The input of a response",
      params,
      query: z.object({
        limit: z.coerce.number().int().min(1).max(100).default(20),
        order: z.enum(["asc", "desc"]).default("desc"),
        after: z.string().optional(),
      }),
      responses: { 200: { description: "The items." } },
      handle: async (call) => {
        const items = await inputItemsOf(call.caller, await servedPart(call, place));
        return Response.json(pageOf(items, call.query));
      },
    }),
    route({
      id: "openai.deleteResponse",
      method: "DELETE",
      path: one,
      access: "caller",
      summary: "Not supported",
      params,
      responses: { 400: { description: "Responses cannot be deleted.", isError: true } },
      handle: async (call) => {
        await servedPart(call, place);
        throw badRequest("a response cannot be deleted: it belongs to a stored conversation", {
          code: "unsupported",
        });
      },
    }),
  ];
}

/** A response of an agent that this surface serves. */
async function servedPart(call: Call<z.output<typeof params>>, place: ServedModels): Promise<TurnPart> {
  const part = await turnPartOf(call.caller, call.params.response);
  place.definitionOf(call.caller, part.agent.definition.name);
  return part;
}

/** Waits at most `waitMs` until a response has finished; `undefined` if it is still running or its agent is paused. */
async function finished(call: Call, part: TurnPart): Promise<WireResponse | undefined> {
  const { caller } = call;
  const work = async (): Promise<WireResponse | undefined> => {
    for (;;) {
      const rest = await part.turn.settled;
      const { response } = await readResponse(caller, part);
      if (response.status !== "queued" && response.status !== "in_progress") return response;
      if (rest.status === "waiting" && rest.reason === "paused") return undefined;
    }
  };
  return (await call.within(work()))?.value;
}

function unfinished(part: TurnPart, headers: Readonly<Record<string, string>>): Response {
  const id = responseIdOf(part);
  const message = `the response ${id} is still running: retrieve it later, or follow its stream`;
  const error = { message, type: "server_error", param: null, code: "response_in_progress" };
  return Response.json({ error }, { status: 504, headers: { ...headers, "x-should-retry": "false" } });
}

/** Ends the turn if this response is its last. */
async function cancelled(call: Call, part: TurnPart): Promise<WireResponse> {
  const { caller } = call;
  const { response, now, isContinued } = await readResponse(caller, part);
  if ("stopReason" in now || isContinued) return response;
  await part.turn.abort("cancelled by its client");
  await call.within(part.turn.result);
  return (await readResponse(caller, part)).response;
}

function pageOf(
  items: readonly JsonObject[],
  {
    limit,
    order,
    after,
  }: { readonly limit: number; readonly order: "asc" | "desc"; readonly after?: string | undefined },
): JsonObject {
  const ordered = order === "asc" ? items : items.toReversed();
  const begin = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  const data = ordered.slice(begin, begin + limit);
  return {
    object: "list",
    data,
    first_id: data[0]?.["id"] ?? null,
    last_id: data.at(-1)?.["id"] ?? null,
    has_more: begin + limit < ordered.length,
  };
}
