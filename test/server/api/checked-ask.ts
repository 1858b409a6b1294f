import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { expect } from "vitest";
import type { z } from "zod";
import { apiSurface } from "../../../src/server/api/api-surface.ts";
import { readDocument, type ShownOperation, type ShownSchema } from "./document.ts";
import type { AskOptions, Served } from "./served.ts";

export interface Answer {
  readonly response: Response;
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
  /** The body, parsed by that schema. */
  readonly as: <Schema extends z.ZodType>(schema: Schema) => z.output<Schema>;
}

/** Sends a request, and checks the answer against the OpenAPI document in closed form: an undocumented field fails. */
export async function checkedAsk({ ask }: Pick<Served, "ask">) {
  const surface = apiSurface();
  const document = await readDocument(surface);
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema({ ...(closed(document) as object), $id: "document" });
  const asked = new Set<string>();
  const checked = async (place: string, options?: AskOptions): Promise<Answer> => {
    const response = await ask(place, options);
    const [method = "", path = ""] = place.split(" ", 2);
    const [route, operation] = operationOf(document.paths, method, path);
    asked.add(operation.operationId);
    const { status, headers } = response;
    const type = headers.get("content-type") ?? "";
    const described = operation.responses[status] ?? (status >= 400 ? operation.responses["default"] : undefined);
    expect([place, status, described !== undefined]).toEqual([place, status, true]);
    if (!type.startsWith("application/json")) return answerOf(response, undefined);
    const body: unknown = await response.json();
    expect(Object.keys(described?.content ?? {})).toContain("application/json");
    const key = operation.responses[status] ? String(status) : "default";
    const pointer = ["paths", route, method.toLowerCase(), "responses", key, "content", "application/json", "schema"];
    const validate = ajv.compile({ $ref: `document#/${pointer.map(escaped).join("/")}` });
    validate(body);
    expect([place, status, validate.errors ?? []]).toEqual([place, status, []]);
    return answerOf(response, body);
  };
  const notAsked = (): string[] => surface.routes.map(({ id }) => id).filter((id) => !asked.has(id));
  return { ask: checked, asked: { notAsked } };
}

function answerOf(response: Response, body: unknown): Answer {
  const { status, headers } = response;
  return { response, status, headers, body, as: (schema) => schema.parse(body) };
}

function operationOf(
  paths: Readonly<Record<string, Readonly<Record<string, ShownOperation>>>>,
  method: string,
  path: string,
): [string, ShownOperation] {
  const [place = ""] = path.split("?");
  for (const [route, item] of Object.entries(paths)) {
    const operation = item[method.toLowerCase()];
    const pattern = new RegExp(`^${route.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`);
    if (operation && pattern.test(place)) return [route, operation];
  }
  throw new Error(`${method} ${path} is not in the document`);
}

/** The value with all object schemas closed. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const schema = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, closed(one)])) as ShownSchema;
  const isObject = schema["type"] === "object" && typeof schema["properties"] === "object";
  return isObject ? { additionalProperties: false, ...schema } : schema;
}

function escaped(key: string): string {
  return encodeURIComponent(key.replaceAll("~", "~0").replaceAll("/", "~1"));
}
