import { z } from "zod";
import {
  jsonSchema,
  agentStateJsonSchema,
  contentSchema,
  lifecycleSchema,
  messageSchema,
  stopReasonSchema,
  storedErrorSchema,
  traceEntrySchema,
  troupeEventSchema,
  usageSchema,
} from "../../state/index.ts";
import type { OpenApiDocument } from "../core/openapi.ts";
import { type Route, route } from "../core/route.ts";
import { docsPage, docsPolicy } from "../core/docs-page.ts";
import { errorSchema, json } from "./answers.ts";
import { amountsSchema, limitNameSchema, limitsSchema, modelUseSchema } from "../../budget/index.ts";

/** Version of the API, not of the package: minor for additions, major for breaking changes. */
const VERSION = "1.0.0";

const description =
  "Durable agents over HTTP: create an agent, run and stream a turn, decide its requests, read its history. Ids of turns and requests " +
  "contain a `#`; write it as `.` in a path. Times are milliseconds since the epoch. A page of a list is `{ items, next }`; clients " +
  "ignore fields that they do not know.";

/** The OpenAPI document of the routes, including its own, and the page that shows it. */
export function documentRoutes(routes: readonly Route[]): readonly Route[] {
  let document: Promise<OpenApiDocument> | undefined;
  const all: Route[] = [...routes];
  const read = (): Promise<OpenApiDocument> => (document ??= documentOf(all));
  const own = [
    route({
      id: "getOpenApi",
      method: "GET",
      path: "/api/openapi.json",
      access: "public",
      summary: "This document.",
      responses: { 200: { description: "OpenAPI 3.1.", schema: z.record(z.string(), jsonSchema) } },
      handle: async () => json(await read()),
    }),
    route({
      id: "getDocs",
      method: "GET",
      path: "/api/docs",
      access: "public",
      summary: "This document as a page.",
      responses: { 200: { description: "HTML.", media: "text/html" } },
      handle: async () =>
        new Response(docsPage(await read()), {
          headers: {
            "content-type": "text/html; charset=utf-8",
            "content-security-policy": docsPolicy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
          },
        }),
    }),
  ];
  all.push(...own);
  return own;
}

async function documentOf(routes: readonly Route[]): Promise<OpenApiDocument> {
  const { openApiDocument } = await import("../core/openapi.ts");
  return openApiDocument({
    title: "troupe",
    description,
    version: VERSION,
    routes,
    error: errorSchema,
    named: namedSchemas,
    anything: [jsonSchema],
  });
}

/** Schemas of the core with a name in the document; schemas of this API contain their names. */
export const namedSchemas: Readonly<Record<string, z.ZodType>> = {
  AgentState: agentStateJsonSchema,
  Amounts: amountsSchema,
  Content: contentSchema,
  ErrorInfo: storedErrorSchema,
  Event: troupeEventSchema,
  Json: jsonSchema,
  Lifecycle: lifecycleSchema,
  LimitName: limitNameSchema,
  Limits: limitsSchema,
  Message: messageSchema,
  ModelUse: modelUseSchema,
  StopReason: stopReasonSchema,
  TraceEntry: traceEntrySchema,
  Usage: usageSchema,
  ...variants(messageSchema.options, "role", "Message"),
  ...variants(troupeEventSchema.options, "type", "Event"),
  ...variants(traceEntrySchema.options, "type", "Trace"),
};

/** `UserMessage` for the option whose `role` is `user`, `TurnStartedEvent` for `turn.started`. */
function variants<Key extends string>(
  options: readonly z.ZodObject<Record<Key, z.ZodLiteral<string>>>[],
  key: Key,
  ending: string,
): Readonly<Record<string, z.ZodType>> {
  return Object.fromEntries(
    options.map((option) => {
      const words = option.shape[key].value.split(/[._]/);
      return [words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("") + ending, option];
    }),
  );
}
