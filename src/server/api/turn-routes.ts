import { z } from "zod";
import type { Agent } from "../../runtime/index.ts";
import { traceEntrySchema, troupeEventSchema, turnIdOf } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import type { RequestKey } from "../core/names.ts";
import type { StartedTurn } from "../core/plain-message.ts";
import { type Call, type Route, route } from "../core/route.ts";
import { eventFrame, resumePoint } from "../core/sse.ts";
import {
  agentParams,
  errors,
  idempotencyHeaders,
  json,
  pageJson,
  pageOf,
  pageQuery,
  replayedHeader,
  wholeList,
} from "./answers.ts";
import { turnEvents } from "../core/turn-events.ts";
import {
  acceptedTurnSchema,
  newInputSchema,
  newTurnSchema,
  steerAnswerJson,
  steerAnswerSchema,
  turnIdJson,
  turnJson,
  turnSchema,
  turnSummaryJson,
  turnSummarySchema,
} from "./turn-json.ts";

const turnParams = agentParams.extend({
  number: z.coerce.number().int().min(1).meta({ description: "Number of the turn within its agent, from 1." }),
});

const turnHeaders = z.object({
  accept: z
    .string()
    .optional()
    .meta({ description: "`text/event-stream`: answer with the turn's events up to its end." }),
  "last-event-id": z.string().optional().meta({ description: "Only events after this one." }),
  prefer: z.string().optional().meta({
    description:
      "`wait=30`: answer when the turn has ended or waits for a decision or a resume, after 30 seconds at the latest.",
  }),
});

const turnPath = "/api/agents/{agentId}/turns/{number}";

/** Starting, streaming, reading and aborting turns. A turn continues if its caller disconnects. */
export const turnRoutes: readonly Route[] = [
  route({
    id: "startTurn",
    method: "POST",
    path: "/api/agents/{agentId}/turns",
    access: "caller",
    summary: "Starts a turn.",
    description:
      "Answers at once. With `Prefer: wait=30` it waits for the end. With `Accept: text/event-stream` it answers with the turn's " +
      "events up to its end; the turn's address is in `Location`, where a client resumes a cut stream with `Last-Event-ID`.",
    params: agentParams,
    headers: turnHeaders.extend(idempotencyHeaders.shape),
    body: newTurnSchema,
    responses: {
      202: { description: "The turn was accepted and may still run.", schema: acceptedTurnSchema },
      200: {
        description: "The turn, which has ended or waits for a decision or a resume; or its events.",
        schema: turnSchema,
        stream: troupeEventSchema,
      },
      ...errors(400, 404, 409, 422),
    },
    handle: async (call) => {
      const { caller, params, headers, body, idempotencyKey } = call;
      const { input, ...options } = body;
      const agent = await caller.agent(params.agentId);
      const isStream = wantsEvents(headers);
      const before = isStream ? (await caller.runtime.head(agent.rootAgentId)).cursor : undefined;
      const key = idempotencyKey === undefined ? {} : { key: { route: "api.startTurn", value: idempotencyKey } };
      const started = await caller.startTurn(agent, input, { ...options, ...key });
      const answer = { location: urlOf(started), ...replayedHeader(started.isReplayed) };
      if (isStream)
        return await streamOf(call, started, { before: started.isReplayed ? undefined : before, headers: answer });
      const wait = waitOf(headers.prefer, call.waitMs);
      if (wait === undefined) return json(turnIdJson(agent.agentId, started.turnId), { status: 202, headers: answer });
      return await settledOf(call, started, { wait, headers: answer });
    },
  }),
  route({
    id: "steerAgent",
    method: "POST",
    path: "/api/agents/{agentId}/steer",
    access: "caller",
    summary: "Gives another input to the agent's open turn; without one, the input starts a turn.",
    description:
      "Answers when the input is part of a turn: the next model call of the open turn sees it, or it has started a turn.",
    params: agentParams,
    headers: idempotencyHeaders,
    body: newInputSchema,
    responses: {
      200: { description: "Where the input went.", schema: steerAnswerSchema },
      ...errors(400, 404, 409, 422),
    },
    handle: async ({ caller, params, body, idempotencyKey }) => {
      const agent = await caller.agent(params.agentId);
      const key = steerKey("api.steerAgent", idempotencyKey);
      return json(steerAnswerJson(agent.agentId, await caller.steer(agent, body.input, key)));
    },
  }),
  route({
    id: "listTurns",
    method: "GET",
    path: "/api/agents/{agentId}/turns",
    access: "caller",
    summary: "The agent's turns, the most recently changed first.",
    params: agentParams,
    query: z.object({ status: turnSummarySchema.shape.status.optional(), ...pageQuery }),
    responses: { 200: { description: "A page.", schema: pageOf(turnSummarySchema) }, ...errors(400, 404) },
    handle: async ({ caller, params, query }) => {
      const { agentId } = await caller.agent(params.agentId);
      const { items, next } = await caller.turns({ ...query, agentId });
      return pageJson({ items: items.map(turnSummaryJson), next });
    },
  }),
  route({
    id: "listAllTurns",
    method: "GET",
    path: "/api/turns",
    access: "caller",
    summary: "The turns of all the caller's agents without those of subagents, the most recently changed first.",
    query: z.object({
      session: z.string().optional(),
      status: turnSummarySchema.shape.status.optional(),
      ...pageQuery,
    }),
    responses: { 200: { description: "A page.", schema: pageOf(turnSummarySchema) }, ...errors(400) },
    handle: async ({ caller, query: { session: sessionId, ...query } }) => {
      const { items, next } = await caller.turns({ ...query, sessionId });
      return pageJson({ items: items.map(turnSummaryJson), next });
    },
  }),
  route({
    id: "getTurn",
    method: "GET",
    path: turnPath,
    access: "caller",
    summary: "One turn; with `Prefer: wait=30` when it has ended or waits for a decision or a resume; or its events.",
    params: turnParams,
    headers: turnHeaders,
    responses: {
      200: { description: "The turn, or its events.", schema: turnSchema, stream: troupeEventSchema },
      ...errors(404),
    },
    handle: async (call) => {
      const found = await turnOf(call.caller, call.params);
      if (wantsEvents(call.headers)) return await streamOf(call, found, { before: undefined, headers: {} });
      const { agent, turn } = found;
      const wait = waitOf(call.headers.prefer, call.waitMs);
      if (wait !== undefined) await call.within(turn.settled, wait * 1_000);
      return json(turnJson(agent.agentId, await turn.current()), { headers: appliedHeader(wait) });
    },
  }),
  route({
    id: "getTrace",
    method: "GET",
    path: `${turnPath}/trace`,
    access: "caller",
    summary: "The turn's trace: its input, model calls and tool calls.",
    params: turnParams,
    responses: { 200: { description: "All entries.", schema: pageOf(traceEntrySchema) }, ...errors(404) },
    handle: async ({ caller, params }) => {
      const { agent, turnId } = await turnOf(caller, params);
      return wholeList(await agent.getTrace(turnId));
    },
  }),
  route({
    id: "abortTurn",
    method: "POST",
    path: `${turnPath}/abort`,
    access: "caller",
    summary: "Ends the turn and the subagents that it waits for; an ended turn is unchanged.",
    params: turnParams,
    body: z.strictObject({ reason: z.string().optional() }).optional(),
    responses: { 200: { description: "The abort is stored.", schema: turnSchema }, ...errors(400, 404) },
    handle: async ({ caller, params, body }) => {
      const { agent, turn } = await turnOf(caller, params);
      await turn.abort(body?.reason);
      return json(turnJson(agent.agentId, await turn.current()));
    },
  }),
  route({
    id: "steerTurn",
    method: "POST",
    path: `${turnPath}/steer`,
    access: "caller",
    summary: "Gives the turn another input; if it is not the open turn any more, the input starts a turn.",
    params: turnParams,
    headers: idempotencyHeaders,
    body: newInputSchema,
    responses: {
      200: { description: "Where the input went.", schema: steerAnswerSchema },
      ...errors(400, 404, 409, 422),
    },
    handle: async ({ caller, params, body, idempotencyKey }) => {
      const { agent, turnId } = await turnOf(caller, params);
      const key = steerKey("api.steerTurn", idempotencyKey);
      return json(steerAnswerJson(agent.agentId, await caller.steer(agent, body.input, { ...key, turnId })));
    },
  }),
];

function steerKey(route: string, value: string | undefined): { readonly key?: RequestKey } {
  return value === undefined ? {} : { key: { route, value } };
}

async function turnOf(caller: Caller, { agentId, number }: z.infer<typeof turnParams>) {
  return await caller.turn(turnIdOf(agentId, number));
}

interface Answer {
  readonly headers: Record<string, string>;
}

async function settledOf(call: Call, { agent, turn }: StartedTurn, { wait, headers }: Answer & { wait: number }) {
  const rest = await call.within(turn.settled, wait * 1_000);
  return json(turnJson(agent.agentId, rest?.value ?? (await turn.current())), {
    status: rest ? 200 : 202,
    headers: { ...headers, ...appliedHeader(wait) },
  });
}

type FoundTurn = Pick<StartedTurn, "agent" | "turn" | "turnId">;

/** `before`: a cursor from before the turn, so that earlier events of the agent are not read. */
function streamOf(call: Call, started: FoundTurn, { before, headers }: Answer & { before: string | undefined }) {
  const { caller, request } = call;
  const after = resumePoint(request) ?? before;
  return call.stream(
    async function* (signal) {
      for await (const event of turnEvents(caller, started, { after, signal })) yield eventFrame(event);
    },
    { headers },
  );
}

function urlOf({ agent, turnId }: { readonly agent: Agent; readonly turnId: string }): string {
  return `/api/agents/${agent.agentId}/turns/${turnIdJson(agent.agentId, turnId).number}`;
}

function wantsEvents({ accept = "" }: { readonly accept?: string | undefined }): boolean {
  return /\btext\/event-stream\b/.test(accept);
}

/** The seconds of `Prefer: wait=…`, within the server's own limit. */
function waitOf(prefer: string | undefined, waitMs: number): number | undefined {
  const [, seconds] = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})\b/i.exec(prefer ?? "") ?? [];
  return seconds === undefined ? undefined : Math.min(Number(seconds), Math.floor(waitMs / 1_000));
}

function appliedHeader(wait: number | undefined): Record<string, string> {
  return wait === undefined ? {} : { "preference-applied": `wait=${wait}` };
}
