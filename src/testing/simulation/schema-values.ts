import type { Json, JsonObject } from "../../state/index.ts";
import type { SeededRandom } from "./seeded-random.ts";

const DEEPEST = 4;
const words = ["apple", "river", "seven", "north", "blue", "x"] as const;
const texts: Readonly<Record<string, string>> = {
  date: "2026-03-01",
  "date-time": "2026-03-01T10:00:00Z",
  time: "10:00:00Z",
  email: "ann@example.com",
  uri: "https://example.com/a",
  uuid: "6f1c1f0e-8f5b-4b7a-9c57-2f3f5a0c1d2e",
};

/**
 * A simple value for a JSON Schema: types, enumerations, alternatives, bounds and well-known formats. Patterns and conditions are
 * ignored; the caller checks the value with the schema.
 */
export function valueFor(schema: unknown, random: SeededRandom, root: unknown = schema, depth = 0): Json {
  if (typeof schema !== "object" || schema === null) return "anything";
  const shape = schema as JsonObject;
  const { const: constant, enum: listed, $ref: reference } = shape;
  if (constant !== undefined) return constant;
  if (Array.isArray(listed) && listed.length > 0) return random.pick(listed as readonly Json[]);
  if (typeof reference === "string") return valueFor(referred(root, reference), random, root, depth + 1);
  const whole = Array.isArray(shape["allOf"]) ? Object.assign({}, shape, ...(shape["allOf"] as JsonObject[])) : shape;
  const choices = [whole["oneOf"], whole["anyOf"]].find((list) => Array.isArray(list) && list.length > 0);
  if (Array.isArray(choices)) {
    // The last alternative is often the simplest of a recursive schema, for instance null.
    return valueFor(depth > DEEPEST ? choices.at(-1) : random.pick(choices), random, root, depth + 1);
  }
  return typedValue(whole, random, root, depth);
}

function typedValue(shape: JsonObject, random: SeededRandom, root: unknown, depth: number): Json {
  const type = Array.isArray(shape["type"]) ? random.pick(shape["type"]) : shape["type"];
  switch (type) {
    case "string":
      return textFor(shape, random);
    case "integer":
    case "number":
      return numberFor(shape, random, type === "integer");
    case "boolean":
      return random.next() < 0.5;
    case "null":
      return null;
    case "array":
      return listFor(shape, random, root, depth);
    default:
      return objectFor(shape, random, root, depth);
  }
}

function textFor(shape: JsonObject, random: SeededRandom): string {
  const { format, minLength = 0, maxLength = 40 } = shape;
  const known = typeof format === "string" ? texts[format] : undefined;
  if (known !== undefined) return known;
  return random.pick(words).padEnd(Number(minLength), "x").slice(0, Number(maxLength));
}

function numberFor(shape: JsonObject, random: SeededRandom, isWhole: boolean): number {
  const step = Number(shape["multipleOf"] ?? (isWhole ? 1 : 0.5));
  const [least, most] = [shape["minimum"], shape["maximum"]].map((bound) =>
    typeof bound === "number" ? bound : undefined,
  );
  const [above, below] = [shape["exclusiveMinimum"], shape["exclusiveMaximum"]];
  const low = Math.max(
    least ?? Number.NEGATIVE_INFINITY,
    typeof above === "number" ? above + step : Number.NEGATIVE_INFINITY,
  );
  const high = Math.min(
    most ?? Number.POSITIVE_INFINITY,
    typeof below === "number" ? below - step : Number.POSITIVE_INFINITY,
  );
  const from = Number.isFinite(low) ? Math.ceil(low / step) : Math.min(1, Math.floor(high / step));
  const to = Math.min(from + 9, Math.floor(high / step));
  return random.between(from, Math.max(from, to)) * step;
}

function listFor(shape: JsonObject, random: SeededRandom, root: unknown, depth: number): Json {
  const least = Number(shape["minItems"] ?? 0);
  const most = Math.min(Number(shape["maxItems"] ?? least + 2), least + 2);
  const length = depth > DEEPEST ? least : random.between(least, most);
  return Array.from({ length }, () => valueFor(shape["items"], random, root, depth + 1));
}

function objectFor(shape: JsonObject, random: SeededRandom, root: unknown, depth: number): Json {
  const required = new Set(Array.isArray(shape["required"]) ? shape["required"] : []);
  const fields = Object.entries((shape["properties"] ?? {}) as JsonObject).flatMap(
    ([name, field]): [string, Json][] => {
      const isLeftOut = !required.has(name) && (depth > DEEPEST || random.next() < 0.5);
      return isLeftOut ? [] : [[name, valueFor(field, random, root, depth + 1)]];
    },
  );
  return Object.fromEntries(fields);
}

function referred(root: unknown, reference: string): unknown {
  const path = reference
    .replace(/^#\/?/, "")
    .split("/")
    .filter((part) => part !== "");
  return path.reduce<unknown>(
    (at, part) => (typeof at === "object" && at !== null ? (at as JsonObject)[part] : undefined),
    root,
  );
}
