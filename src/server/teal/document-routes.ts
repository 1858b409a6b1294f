import { z } from "zod";
import { jsonSchema } from "../../state/index.ts";
import { docsPage, docsPolicy } from "../core/docs-page.ts";
import type { OpenApiDocument } from "../core/openapi.ts";
import { type Route, route } from "../core/route.ts";
import { type Address, prefixOf } from "./answers.ts";

const errorSchema = z.object({ detail: z.union([z.string(), z.array(z.record(z.string(), jsonSchema))]) }).meta({
  id: "Error",
});

/** The OpenAPI document of one agent, and the page that shows it. */
export function documentRoutes(description: string, address: Address, routes: readonly Route[]): readonly Route[] {
  const prefix = prefixOf(address);
  const shape = { method: "GET", access: "public" } as const;
  const read = async (): Promise<OpenApiDocument> => {
    const { openApiDocument } = await import("../core/openapi.ts");
    return openApiDocument({
      title: address.name,
      description,
      version: address.version,
      routes,
      error: errorSchema,
      named: {},
      anything: [jsonSchema],
    });
  };
  return [
    route({
      ...shape,
      id: `${prefix}.openapi`,
      path: `${prefix}/openapi.json`,
      summary: "The OpenAPI document of this agent",
      responses: { 200: { description: "OpenAPI 3.1." } },
      handle: async () => Response.json(await read()),
    }),
    route({
      ...shape,
      id: `${prefix}.docs`,
      path: `${prefix}/docs`,
      summary: "This document as a page",
      responses: { 200: { description: "HTML.", media: "text/html" } },
      handle: async () =>
        new Response(docsPage(await read()), {
          headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": docsPolicy },
        }),
    }),
  ];
}
