import { z } from "zod";
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiOverrideContext } from "zod-openapi";
import type { Route, RouteResponse } from "./route.ts";

export interface OpenApiOptions {
  readonly title: string;
  readonly description: string;
  readonly version: string;
  readonly routes: readonly Route[];
  /** The form of this surface's errors. */
  readonly error: z.ZodType;
  /** Schemas of other folders by component name; the surface's own schemas have their names in `meta({ id })`. */
  readonly named: Readonly<Record<string, z.ZodType>>;
  /** Schemas for any JSON: written as the empty schema instead of a recursive one. */
  readonly anything: readonly z.ZodType[];
}

export type OpenApiDocument = ReturnType<typeof createDocument>;

/**
 * Generates the OpenAPI 3.1 document of the routes. Objects in answers are open, so that a new field breaks no client;
 * objects in bodies are closed, as in validation.
 */
export function openApiDocument(options: OpenApiOptions): OpenApiDocument {
  const { title, description, version, routes, error, named, anything } = options;
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const route of routes) (paths[route.path] ??= {})[route.method.toLowerCase()] = operationOf(route, error);
  const anyJson = new Set<unknown>(anything);
  return createDocument(
    {
      openapi: "3.1.1",
      info: { title, description, version },
      security: [{ bearer: [] }],
      components: { schemas: named, securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
      paths,
    },
    { override: (context) => tidy(context, anyJson), allowEmptySchema: { lazy: true } },
  );
}

function operationOf(route: Route, error: z.ZodType): ZodOpenApiOperationObject {
  const { id, summary, description, access, params, query, headers, body, responses } = route;
  return {
    operationId: id,
    summary,
    ...(description === undefined ? {} : { description }),
    ...(access !== "caller" ? { security: [] } : {}),
    requestParams: {
      ...(params ? { path: params } : {}),
      ...(query ? { query } : {}),
      ...(headers ? { header: headers } : {}),
    },
    ...(body
      ? {
          requestBody: {
            required: !body.safeParse(undefined).success,
            content: { "application/json": { schema: body } },
          },
        }
      : {}),
    responses: {
      ...Object.fromEntries(
        Object.entries(responses).map(([status, response]) => [status, responseOf(response, error)]),
      ),
      default: { description: "Any other error.", content: { "application/json": { schema: error } } },
    },
  };
}

function responseOf({ description, schema, stream, isError, media }: RouteResponse, error: z.ZodType) {
  const json = isError ? error : schema;
  return {
    description,
    content: {
      ...(json ? { "application/json": { schema: json } } : {}),
      ...(stream ? { "text/event-stream": { schema: stream } } : {}),
      ...(media ? { [media]: {} } : {}),
    },
  };
}

const largest = Number.MAX_SAFE_INTEGER;

/** Removes the parts of zod's schemas that only concern JavaScript. */
function tidy({ jsonSchema, zodSchema, io }: ZodOpenApiOverrideContext, anyJson: ReadonlySet<unknown>): void {
  if (anyJson.has(zodSchema)) {
    for (const key of Object.keys(jsonSchema)) delete (jsonSchema as Record<string, unknown>)[key];
    return;
  }
  // A user's route may use another copy of zod, whose registry contains the description.
  const { description } = zodSchema as { readonly description?: string };
  if (description !== undefined && !z.globalRegistry.has(zodSchema)) jsonSchema.description ??= description;
  if (jsonSchema.type === "integer") {
    if (jsonSchema.minimum === -largest) delete jsonSchema.minimum;
    if (jsonSchema.maximum === largest) delete jsonSchema.maximum;
    jsonSchema.format ??= "int64";
  }
  const { additionalProperties, propertyNames } = jsonSchema as Record<string, unknown>;
  if (io === "output" && additionalProperties === false) delete jsonSchema.additionalProperties;
  if (propertyNames && JSON.stringify(propertyNames) === '{"type":"string"}') {
    delete (jsonSchema as Record<string, unknown>)["propertyNames"];
  }
}
