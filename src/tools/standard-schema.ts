import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { z } from "zod";
import { wordsOfThrown } from "../base/index.ts";
import type { JsonObject } from "../state/index.ts";
import type { Issue } from "./parsed-arguments.ts";

/**
 * A schema of the author's library: zod 4, zod/mini, arktype, valibot by `toStandardJsonSchema()`, or any other that implements Standard
 * Schema and Standard JSON Schema (https://standardschema.dev).
 */
export type ValueSchema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output>;

/** The type of a checked value, after the schema's transforms. */
export type ValueOf<Schema extends ValueSchema> = StandardSchemaV1.InferOutput<Schema>;

/** Whether the value implements Standard Schema. A schema of arktype is a function. */
export function isValueSchema(value: unknown): value is ValueSchema {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard = (value as Partial<ValueSchema>)["~standard"];
  return standard?.version === 1 && typeof standard.validate === "function";
}

/** The accepted kinds of schema, for error messages. */
export const valueSchemaKinds = "a schema of zod 4, arktype or valibot";

/**
 * The JSON Schema of the values that the schema accepts.
 * @throws Error with the reason if the schema cannot be expressed as JSON Schema.
 */
export function jsonSchemaOf(schema: ValueSchema): JsonObject {
  return JSON.parse(JSON.stringify(writtenBy(schema))) as JsonObject;
}

const target = "draft-2020-12";

function writtenBy(schema: ValueSchema): object {
  const standard: StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props> = schema["~standard"];
  if (standard.jsonSchema !== undefined) return standard.jsonSchema.input({ target });
  if (schema instanceof z.core.$ZodType) return writtenByZod(schema);
  throw new TypeError(`the schema (${standard.vendor}) has no JSON Schema: ${adviceFor(standard.vendor)}`);
}

function adviceFor(vendor: string): string {
  if (vendor === "valibot") return "wrap it in toStandardJsonSchema() of @valibot/to-json-schema";
  if (vendor === "zod") return "use zod 4, because zod 3 cannot write one";
  return "use a library that implements Standard JSON Schema";
}

/** Methods of a schema that are missing in zod/mini and early versions. */
interface Describing {
  readonly meta?: (this: z.core.$ZodType) => object | undefined;
  readonly toJSONSchema?: (this: z.core.$ZodType, params: { readonly io: "input" }) => z.core.JSONSchema.BaseSchema;
}

/** The metadata of a schema in its own copy of zod, set by `describe` and `meta`. */
const ownRegistry = {
  get: (schema: z.core.$ZodType) => metadataOf(schema),
  has: (schema: z.core.$ZodType) => metadataOf(schema) !== undefined,
};

function metadataOf(schema: z.core.$ZodType): object | undefined {
  const { meta } = schema as Describing;
  return meta === undefined ? z.globalRegistry.get(schema) : meta.call(schema);
}

/**
 * Writes the JSON Schema of zod/mini, and of zod before 4.2. The schema may come from another copy and version of zod: that copy knows all
 * its types and metadata, so its `toJSONSchema` is used if it has one.
 */
function writtenByZod(schema: z.core.$ZodType): object {
  const { toJSONSchema } = schema as Describing;
  if (toJSONSchema !== undefined) return toJSONSchema.call(schema, { io: "input" });
  const metadata = ownRegistry as unknown as typeof z.globalRegistry;
  return z.toJSONSchema(schema, { io: "input", metadata });
}

/** A value that was checked by a schema's own code. */
export type CheckedValue =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly Issue[] }
  /** The schema's own code threw: the value could not be checked. */
  | { readonly ok: false; readonly thrown: string };

/** Checks a value and applies the schema's transforms, which are the author's code. Never rejects. */
export async function checkValue(schema: ValueSchema, value: unknown): Promise<CheckedValue> {
  try {
    const result = await validated(schema, value);
    if (result.issues === undefined) return { ok: true, value: result.value };
    return { ok: false, issues: result.issues.flatMap(issuesOf) };
  } catch (error) {
    return { ok: false, thrown: wordsOfThrown(error) };
  }
}

type Result = StandardSchemaV1.Result<unknown>;

async function validated(schema: ValueSchema, value: unknown): Promise<Result> {
  if (!(schema instanceof z.core.$ZodType)) return await schema["~standard"].validate(value);
  // The `validate` of zod runs asynchronous checks twice and drops the first promise, whose rejection would end the process.
  const result = await z.safeParseAsync(schema, value);
  return result.success ? { value: result.data } : { issues: result.error.issues };
}

type ZodIssue = z.core.$ZodIssue;

function issuesOf(issue: StandardSchemaV1.Issue): Issue[] {
  const path = (issue.path ?? []).map((part) => {
    const key = typeof part === "object" ? part.key : part;
    return typeof key === "number" ? key : String(key);
  });
  const { code, expected, errors } = issue as Partial<Extract<ZodIssue, { code: "invalid_type" }>> &
    Partial<Extract<ZodIssue, { code: "invalid_union" }>>;
  // If no language is set in zod, its messages do not contain the expected type.
  const known = code === "invalid_type" ? { expected } : {};
  if (code !== "invalid_union" || errors === undefined) return [{ path, ...known, ...messageOf(issue.message) }];
  // A union's own message has no details, so the expectations of its alternatives are listed.
  const alternatives = errors
    .flat()
    .slice(0, 5)
    .map((inner) => {
      const { message, expected: wanted } = messageOf(inner.message);
      return `${inner.path.length === 0 ? "" : `${inner.path.map(String).join(".")}: `}${wanted ?? message}`;
    });
  if (alternatives.length === 0) return [{ path, message: "fits none of the alternatives" }];
  return [{ path, message: "fits none of the alternatives", expected: alternatives.join(", or ") }];
}

/** Splits "Invalid input: expected string, received number". */
function messageOf(text: string): { readonly message: string; readonly expected?: string | undefined } {
  const parts = /^(.*?): expected (.*?)(?:, received (.*))?$/s.exec(text);
  if (parts === null) return { message: text };
  const [, message = text, expected, received] = parts;
  if (received === "undefined") return { message: "is missing", expected };
  return { message: received === undefined ? message : `${message}: received ${received}`, expected };
}
