import { z } from "zod";
import { type Route, route } from "../core/route.ts";
import { errors, idempotencyHeaders, json, pageJson, pageOf, pageQuery, replayedHeader } from "./answers.ts";
import {
  newScheduleSchema,
  scheduledRunJson,
  scheduledRunJsonSchema,
  scheduleJson,
  scheduleJsonSchema,
} from "./schedule-json.ts";

const scheduleParams = z.object({ scheduleId: z.string().meta({ description: "Id of a schedule." }) });
/** A schedule is written again with each run. */
const MOST_BYTES = 200_000;
const emptyBody = z.strictObject({}).optional();

/** The caller's schedules. */
export const scheduleRoutes: readonly Route[] = [
  route({
    id: "createSchedule",
    method: "POST",
    path: "/api/schedules",
    access: "caller",
    summary: "Creates a schedule; with `key` it replaces the one of that name. It counts as starting a turn.",
    headers: idempotencyHeaders,
    body: newScheduleSchema,
    bodyBytes: MOST_BYTES,
    responses: {
      201: { description: "The schedule was created.", schema: scheduleJsonSchema },
      200: { description: "The schedule existed, and has these settings now.", schema: scheduleJsonSchema },
      ...errors(400, 403, 404, 422),
    },
    handle: async ({ caller, body, idempotencyKey }) => {
      const { key: name, ...options } = body;
      const key = idempotencyKey === undefined ? {} : { key: { route: "api.createSchedule", value: idempotencyKey } };
      const { schedule, isReplayed } = await caller.schedules.set({ ...options, name, ...key });
      return json(scheduleJson(schedule), {
        status: isReplayed ? 200 : 201,
        headers: { ...replayedHeader(isReplayed && name === undefined), location: `/api/schedules/${schedule.key}` },
      });
    },
  }),
  route({
    id: "listSchedules",
    method: "GET",
    path: "/api/schedules",
    access: "caller",
    summary: "The caller's schedules, by id.",
    query: z.object({
      agent: z.string().optional().meta({ description: "Only schedules that run this agent." }),
      ...pageQuery,
    }),
    responses: { 200: { description: "A page.", schema: pageOf(scheduleJsonSchema) }, ...errors(400) },
    handle: async ({ caller, query: { agent: agentId, ...page } }) => {
      const { items, next } = await caller.schedules.list({ agentId, ...page });
      return pageJson({ items: items.map(scheduleJson), next });
    },
  }),
  route({
    id: "getSchedule",
    method: "GET",
    path: "/api/schedules/{scheduleId}",
    access: "caller",
    summary: "One schedule with its newest runs.",
    params: scheduleParams,
    responses: { 200: { description: "The schedule.", schema: scheduleJsonSchema }, ...errors(404) },
    handle: async ({ caller, params }) => json(scheduleJson(await caller.schedules.get(params.scheduleId))),
  }),
  route({
    id: "deleteSchedule",
    method: "DELETE",
    path: "/api/schedules/{scheduleId}",
    access: "caller",
    summary: "Removes a schedule. Turns that it has opened continue.",
    params: scheduleParams,
    responses: { 200: { description: "The schedule as it was.", schema: scheduleJsonSchema }, ...errors(404) },
    handle: async ({ caller, params }) => json(scheduleJson(await caller.schedules.remove(params.scheduleId))),
  }),
  route({
    id: "pauseSchedule",
    method: "POST",
    path: "/api/schedules/{scheduleId}/pause",
    access: "caller",
    summary: "Opens no more turns at its times until it is resumed.",
    params: scheduleParams,
    body: emptyBody,
    responses: { 200: { description: "The paused schedule.", schema: scheduleJsonSchema }, ...errors(400, 404) },
    handle: async ({ caller, params }) => json(scheduleJson(await caller.schedules.pause(params.scheduleId))),
  }),
  route({
    id: "resumeSchedule",
    method: "POST",
    path: "/api/schedules/{scheduleId}/resume",
    access: "caller",
    summary: "Continues with the next time after now.",
    params: scheduleParams,
    body: emptyBody,
    responses: { 200: { description: "The schedule.", schema: scheduleJsonSchema }, ...errors(400, 404) },
    handle: async ({ caller, params }) => json(scheduleJson(await caller.schedules.resume(params.scheduleId))),
  }),
  route({
    id: "runSchedule",
    method: "POST",
    path: "/api/schedules/{scheduleId}/run",
    access: "caller",
    summary: "Opens one turn now, besides the times, also of a paused schedule. It counts as starting a turn.",
    params: scheduleParams,
    headers: idempotencyHeaders,
    body: emptyBody,
    responses: {
      200: { description: "What came of the run.", schema: scheduledRunJsonSchema },
      ...errors(400, 404),
    },
    handle: async ({ caller, params, idempotencyKey }) => {
      const key = idempotencyKey === undefined ? undefined : { route: "api.runSchedule", value: idempotencyKey };
      const { run, isReplayed } = await caller.schedules.run(params.scheduleId, key);
      return json(scheduledRunJson(run), { headers: replayedHeader(isReplayed) });
    },
  }),
];
