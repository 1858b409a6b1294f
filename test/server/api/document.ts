import type { Surface } from "../../../src/server/core/surface.ts";

export interface ShownSchema {
  readonly [key: string]: unknown;
}

export interface ShownContent {
  readonly description?: string;
  readonly content: Readonly<Record<string, { readonly schema?: ShownSchema }>>;
}

export interface ShownOperation {
  readonly operationId: string;
  readonly parameters?: readonly { name: string; in: string; required?: boolean; schema: ShownSchema }[];
  readonly requestBody?: ShownContent & { readonly required?: boolean };
  readonly responses: Readonly<Record<string, ShownContent>>;
  readonly security?: readonly object[];
}

/** The document as a client receives it: after a JSON round trip. */
export interface ShownDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly security: readonly object[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, ShownOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, ShownSchema>> };
}

export async function readDocument(surface: Surface): Promise<ShownDocument> {
  const route = surface.routes.find(({ id }) => id === "getOpenApi");
  const response = await route?.handle({} as never);
  return (await response?.json()) as ShownDocument;
}

/** All `$ref` of a value. */
export function refsIn(value: unknown): Set<string> {
  const refs = new Set<string>();
  JSON.stringify(value, (key, one: unknown) => {
    if (key === "$ref" && typeof one === "string") refs.add(one);
    return one;
  });
  return refs;
}

/** The target of a reference `#/a/b`. */
export function schemaAt(document: ShownDocument, ref: string): unknown {
  const [, ...keys] = ref.split("/");
  return keys.reduce<unknown>(
    (place, key) => (place as Readonly<Record<string, unknown>> | undefined)?.[key],
    document,
  );
}
