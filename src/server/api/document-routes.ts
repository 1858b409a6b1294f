import { z } from "zod";
import { jsonSchema } from "../../state/index.ts";
import type { OpenApiDocument } from "../core/openapi.ts";
import { type Route, route } from "../core/route.ts";
import { docsPage, docsPolicy } from "../core/docs-page.ts";
import { errorSchema, json } from "./answers.ts";
import { namedSchemas } from "./named-schemas.ts";

/** Version of the API, not of the package: it grows when something is added, and its first part when something breaks. */
const VERSION = "1.0.0";

const description =
  "Durable agents over HTTP: create an agent, run and stream a turn, decide what it asks, read what it did. Ids of turns and requests " +
  "hold a `#`; in a path it is written `.`. Times are milliseconds since the epoch. A page of a list is `{ items, next }`; clients " +
  "ignore fields that they do not know.";

/** The OpenAPI document of the routes, itself among them, and the page that shows it. */
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
