import { z } from "zod";
import { visible } from "../base/index.ts";
import type { Json, JsonObject } from "../state/index.ts";
import { defineTool } from "../tools/index.ts";

/** The answer to an elicitation, as the protocol has it: one level of texts, numbers, booleans and lists of texts. */
export type FormContent = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** The form that a server wants a person to fill in. */
export interface Form {
  /** A JSON Schema of what the protocol allows; all other keywords of the server, such as `pattern`, are left out. */
  readonly schema: JsonObject;
  /** The fields for a person, a line each, and how to answer; "" if there are no fields. */
  readonly description: string;
  /** The choices, if the form is one choice. */
  readonly options?: readonly string[];
  /** Reads and checks the text of an answer: JSON, or the value alone if the form has one field or one required field. */
  read(text: string): Promise<FormAnswer>;
}

export type FormAnswer =
  | { readonly ok: true; readonly content: FormContent }
  /** `problem` is for the person who answered. */
  | { readonly ok: false; readonly problem: string };

const MOST_FIELDS = 50;
const MOST_CHOICES = 200;
const LONGEST_NAME = 100;
const LONGEST_WORDS = 1_000;
/** Longest schema, in characters of its JSON. */
const LONGEST_FORM = 32_000;
/** Longest answer, in characters. */
const LONGEST_ANSWER = 100_000;

const words = z.string().max(LONGEST_WORDS);
const count = z.number().int().nonnegative();
/** Words for people, unlike values, which the server gets back as they are. */
const label = words.transform(visible);
const labels = { title: label.optional(), description: label.optional() };
const choice = z.object({ const: words, title: label });
const names = z.array(words).min(1).max(MOST_CHOICES);

// The first that fits: a text with choices is not a free text.
const fieldSchema = z.union([
  z.object({ type: z.literal("string"), ...labels, enum: names, default: words.optional() }),
  z.object({
    type: z.literal("string"),
    ...labels,
    oneOf: z.array(choice).min(1).max(MOST_CHOICES),
    default: words.optional(),
  }),
  z.object({
    type: z.literal("array"),
    ...labels,
    items: z.union([
      z.object({ type: z.literal("string"), enum: names }),
      z.object({ anyOf: z.array(choice).min(1).max(MOST_CHOICES) }),
    ]),
    minItems: count.optional(),
    maxItems: count.optional(),
    default: z.array(words).max(MOST_CHOICES).optional(),
  }),
  z.object({ type: z.literal("boolean"), ...labels, default: z.boolean().optional() }),
  z.object({
    type: z.enum(["number", "integer"]),
    ...labels,
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    default: z.number().optional(),
  }),
  z.object({
    type: z.literal("string"),
    ...labels,
    minLength: count.optional(),
    maxLength: count.optional(),
    format: z.enum(["email", "uri", "date", "date-time"]).optional(),
    default: words.optional(),
    enum: z.undefined().optional(),
    oneOf: z.undefined().optional(),
  }),
]);
type Field = z.infer<typeof fieldSchema>;

const formSchema = z.object({
  type: z.literal("object"),
  properties: z.record(z.string().min(1).max(LONGEST_NAME), fieldSchema),
  required: z.array(z.string()).max(MOST_FIELDS).optional(),
});

/** The form of a server's schema; `undefined` if it is not one that the protocol allows, or too large. */
export function formOf(requestedSchema: unknown): Form | undefined {
  const read = formSchema.safeParse(requestedSchema);
  if (!read.success) return undefined;
  const { properties, required = [] } = read.data;
  const fields = Object.entries(properties);
  const needed = required.filter((name) => Object.hasOwn(properties, name));
  const schema = { type: "object", properties, required: needed, additionalProperties: false } as JsonObject;
  if (fields.length > MOST_FIELDS || JSON.stringify(schema).length > LONGEST_FORM) return undefined;
  // The name of the only field that an answer without JSON can mean.
  const [only] = fields.length === 1 ? fields.map(([name]) => name) : needed.length === 1 ? needed : [];
  const check = defineTool({
    name: "answer",
    description: "Checks an answer.",
    parameters: JSON.stringify(schema),
    execute: () => undefined,
  });
  const lines = fields.map(([name, field]) => lineOf(name, field, needed.includes(name)));
  const options = fields.length === 1 ? choicesOf((fields[0] as [string, Field])[1]) : undefined;
  return {
    schema,
    description: fields.length === 0 ? "" : [...lines, hintOf(fields, only)].join("\n"),
    ...(options === undefined ? {} : { options: options.map(({ title }) => title) }),
    read: async (text) => {
      if (text.length > LONGEST_ANSWER) return { ok: false, problem: `it has more than ${LONGEST_ANSWER} characters` };
      const value = valueOf(text, fields, only);
      if (value === undefined) {
        const wanted = fields.map(([name]) => name).join(", ");
        return { ok: false, problem: `it is not a JSON object with the fields ${wanted}` };
      }
      const parsed = await check.parse(JSON.stringify(withDefaults(value, fields)));
      if (parsed.ok) return { ok: true, content: parsed.json as FormContent };
      const problems = parsed.issues?.map(({ path, message }) => `${path}: ${message}`);
      return { ok: false, problem: problems?.join("; ") ?? parsed.message };
    },
  };
}

function valueOf(text: string, fields: readonly (readonly [string, Field])[], only: string | undefined): unknown {
  const trimmed = text.trim();
  if (fields.length === 0) return {};
  if (trimmed.startsWith("{")) {
    try {
      return JSON.parse(trimmed) as unknown;
    } catch {
      // A text that only looks like JSON.
    }
  }
  const field = fields.find(([name]) => name === only)?.[1];
  return only === undefined || field === undefined ? undefined : { [only]: single(field, trimmed) };
}

/** The answer with the form's defaults for the fields that it leaves out. */
function withDefaults(value: unknown, fields: readonly (readonly [string, Field])[]): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const defaults = fields.flatMap(([name, { default: usual }]) =>
    usual === undefined ? [] : [[name, usual] as const],
  );
  return { ...Object.fromEntries(defaults), ...value };
}

/** The value that a person has written without JSON; a text that does not fit is left for the check. */
function single(field: Field, text: string): Json {
  switch (field.type) {
    case "number":
    case "integer":
      return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
    case "boolean":
      if (/^(?:true|yes|y)$/i.test(text)) return true;
      return /^(?:false|no|n)$/i.test(text) ? false : text;
    case "array":
      return text === "" ? [] : text.split(",").map((one) => chosen(field, one.trim()));
    case "string":
      return chosen(field, text);
    default:
      field satisfies never;
      return text;
  }
}

/** A choice by its value or its title. */
function chosen(field: Field, text: string): string {
  const choices = choicesOf(field) ?? [];
  if (choices.some(({ value }) => value === text)) return text;
  return choices.find(({ title }) => title === text)?.value ?? text;
}

function choicesOf(field: Field): readonly { readonly value: string; readonly title: string }[] | undefined {
  const { items = field } = field as { readonly items?: unknown };
  const {
    enum: values,
    oneOf,
    anyOf = oneOf,
  } = items as {
    readonly enum?: readonly string[];
    readonly oneOf?: readonly z.infer<typeof choice>[];
    readonly anyOf?: readonly z.infer<typeof choice>[];
  };
  if (values !== undefined) return values.map((value) => ({ value, title: value }));
  return anyOf?.map(({ const: value, title }) => ({ value, title }));
}

function lineOf(name: string, field: Field, isRequired: boolean): string {
  const { title, description, type, default: usual } = field;
  const choices = choicesOf(field);
  const kind = { string: "text", array: "list", boolean: "true or false", number: "number", integer: "whole number" };
  const what = choices === undefined ? kind[type] : `${type === "array" ? "some" : "one"} of ${listed(choices)}`;
  const about = [title, description].filter((one) => one !== undefined && one !== "").join(": ");
  const otherwise = usual === undefined ? "" : `, by default ${JSON.stringify(usual)}`;
  return `- ${name} (${what}${isRequired ? "" : ", optional"}${otherwise})${about === "" ? "" : `: ${about}`}`;
}

function hintOf(fields: readonly (readonly [string, Field])[], only: string | undefined): string {
  const example = fields.slice(0, 3).map(([name]) => `${JSON.stringify(name)}: …`);
  const json = `JSON such as {${(only === undefined ? example : [`${JSON.stringify(only)}: …`]).join(", ")}}`;
  return only === undefined ? `Answer with ${json}.` : `Answer with ${only} alone, or with ${json}.`;
}

function listed(choices: readonly { readonly value: string; readonly title: string }[]): string {
  const shown = choices.slice(0, 20).map(({ value, title }) => (title === value ? value : `${value} (${title})`));
  return `${shown.join(", ")}${choices.length > shown.length ? `, and ${choices.length - shown.length} more` : ""}`;
}
