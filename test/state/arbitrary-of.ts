import * as fc from "fast-check";
import type { z } from "zod";
import { jsonObjectSchema, jsonSchema, type ReactState, reactStateSchema } from "../../src/state/index.ts";

/** A JSON copy without keys that reach an object's prototype, which `fromJSON` and the tools' parsers refuse. */
function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replaceAll(/__proto__|constructor|prototype/g, "key")) as unknown;
}

const json = fc.jsonValue({ maxDepth: 3 }).map(asJson);
const jsonObject = fc.dictionary(fc.string(), json).map(asJson);

/** Schemas whose values cannot be generated from their definition: recursive ones and those with rules across fields. */
const known = new Map<z.ZodType, fc.Arbitrary<unknown>>([
  [jsonSchema, json],
  [jsonObjectSchema, jsonObject],
]);

interface Definition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly element?: z.ZodType;
  readonly options?: readonly z.ZodType[];
  readonly values?: readonly unknown[];
  readonly entries?: Readonly<Record<string, string>>;
  readonly innerType?: z.ZodType;
  readonly keyType?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly out?: z.ZodType;
}

/** Generates from the schema's pattern, because random text rarely matches one. */
function arbitraryText(schema: z.ZodType): fc.Arbitrary<string> {
  const checks = (schema._zod.def as { readonly checks?: readonly z.core.$ZodCheck[] }).checks ?? [];
  const patterns = checks.map(({ _zod: { def } }) => (def as { readonly pattern?: RegExp }).pattern);
  const pattern = patterns.find((one) => one !== undefined);
  return pattern ? fc.stringMatching(pattern) : fc.string({ unit: "grapheme", maxLength: 12 });
}

/**
 * Values that match a schema, generated from its definition, so that no field is forgotten. Throws for an unsupported kind
 * of schema.
 */
export function arbitraryOf(schema: z.ZodType): fc.Arbitrary<unknown> {
  const made = known.get(schema) ?? arbitraryMade(schema);
  known.set(schema, made);
  return made;
}

function arbitraryMade(schema: z.ZodType): fc.Arbitrary<unknown> {
  if (schema === (reactStateSchema as z.ZodType)) return reactState();
  const definition = schema._zod.def as unknown as Definition;
  switch (definition.type) {
    case "object":
      return objectOf(definition.shape ?? {});
    case "string":
      return arbitraryText(schema).filter((text) => schema.safeParse(text).success);
    case "number":
      return numberOf(schema);
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "literal":
      return fc.constantFrom(...(definition.values ?? []));
    case "enum":
      return fc.constantFrom(...Object.values(definition.entries ?? {}));
    case "array":
      return fc.array(inner(definition.element), { maxLength: 3 });
    case "record":
      return fc.dictionary(inner(definition.keyType) as fc.Arbitrary<string>, inner(definition.valueType), {
        maxKeys: 3,
        noNullPrototype: true,
      });
    case "union":
      return fc.oneof(...(definition.options ?? []).map((option) => arbitraryOf(option)));
    case "nullable":
      return fc.option(inner(definition.innerType), { nil: null });
    case "default":
    case "optional":
    case "readonly":
      return inner(definition.innerType);
    case "pipe":
      return inner(definition.out);
    default:
      throw new Error(`cannot generate values for a schema of the kind "${definition.type}"`);
  }
}

function inner(schema: z.ZodType | undefined): fc.Arbitrary<unknown> {
  if (!schema) throw new Error("the schema has no inner schema");
  return arbitraryOf(schema);
}

/** Absent members are omitted rather than undefined, as in JSON. */
function objectOf(shape: Readonly<Record<string, z.ZodType>>): fc.Arbitrary<unknown> {
  const members = Object.fromEntries(Object.entries(shape).map(([key, value]) => [key, arbitraryOf(value)]));
  const requiredKeys = Object.keys(shape).filter((key) => shape[key]?._zod.def.type !== "optional");
  return fc.record(members, { requiredKeys, noNullPrototype: true });
}

function numberOf(schema: z.ZodType): fc.Arbitrary<unknown> {
  const { minimum = -1e9, exclusiveMinimum = -1e9 } = schema._zod.bag as Readonly<Record<string, number | undefined>>;
  // The number format adds bounds that the schema did not set.
  const min = Math.max(minimum, exclusiveMinimum, -1e9);
  const accepted = (value: number): boolean => schema.safeParse(value).success;
  if (!accepted(Math.ceil(min) + 1.5)) return fc.integer({ min, max: 2 ** 31 }).filter(accepted);
  // JSON has no -0.
  return fc.double({ min, noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
}

/** Applies the rules across its fields: no window larger than the conversation, no unknown call in the context. */
function reactState(): fc.Arbitrary<unknown> {
  return objectOf(reactStateSchema.shape).map((value) => {
    const state = value as ReactState;
    const { contextWindowSize, toolCallIds } = state.reActContext;
    const reActContext = {
      ...state.reActContext,
      contextWindowSize: Math.min(contextWindowSize, state.messages.length),
      toolCallIds: [...toolCallIds, ...Object.keys(state.toolCalls)].filter((id) => Object.hasOwn(state.toolCalls, id)),
    };
    return { ...state, reActContext };
  });
}
