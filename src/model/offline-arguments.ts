import type { Json, JsonObject, ModelTool } from "../state/index.ts";
import { pathsIn } from "./offline-request.ts";
import { isStopWord, wordsOf } from "./offline-words.ts";

/** A parameter of a tool, from its JSON Schema. */
export interface Parameter {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  /** The values it is restricted to, if it is. */
  readonly choices: readonly Json[];
  readonly format: string | undefined;
  /** Type of an array's items. */
  readonly itemType: string | undefined;
}

/** Arguments found in a message, or the required parameters that are missing. */
type FilledArguments =
  | { readonly ok: true; readonly sets: readonly { readonly [name: string]: Json }[] }
  | { readonly ok: false; readonly missing: readonly Parameter[] };

interface Material {
  readonly text: string;
  readonly numbers: number[];
  readonly quotations: string[];
  readonly names: string[];
}

const maxSets = 8;
const fileParameter = /^(?:file|path|document|source|file_?name|file_?path)$/i;

/**
 * Fills a tool's parameters with numbers, quotations, names and paths of the message, in the order of both. If one
 * required string could take several names ("in Oslo and in Rome"), there is one set of arguments for each.
 */
export function fillArguments(tool: ModelTool, message: string): FilledArguments {
  const material = materialOf(message);
  const parameters = parametersOf(tool);
  const required = parameters.filter((parameter) => parameter.isRequired);
  const filled: Record<string, Json> = {};
  const missing: Parameter[] = [];
  for (const parameter of parameters) {
    const value =
      labelledValue(parameter, message) ??
      chosenValue(parameter, message) ??
      (parameter.isRequired ? nextValue(parameter, material, required.length) : undefined);
    if (value !== undefined)
      Object.defineProperty(filled, parameter.name, { value, enumerable: true, configurable: true, writable: true });
    else if (parameter.isRequired) missing.push(parameter);
  }
  if (missing.length > 0) return { ok: false, missing };
  const [only] = required;
  if (required.length !== 1 || only?.type !== "string" || only.choices.length > 0) return { ok: true, sets: [filled] };
  const more = [...material.quotations, ...material.names].filter((name) => name !== filled[only.name]);
  return { ok: true, sets: [filled, ...more.map((name) => ({ ...filled, [only.name]: name }))].slice(0, maxSets) };
}

function materialOf(text: string): Material {
  const unquoted = text.replaceAll(/["“][^"”\n]{1,400}["”]/gu, " ");
  return {
    text,
    numbers: numbersIn(unquoted),
    quotations: [...text.matchAll(/["“]([^"“”\n]{1,400})["”]/gu)].map((match) => match[1] ?? ""),
    names: namesIn(unquoted),
  };
}

function numbersIn(text: string): number[] {
  return [...text.matchAll(/(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,15})?(?![\w])/g)].map((match) =>
    Number(match[0].replaceAll(",", "")),
  );
}

/** Capitalised words and runs of them, except words that are only capitalised because they begin a sentence. */
function namesIn(text: string): string[] {
  const names: string[] = [];
  for (const match of text.matchAll(/\p{Lu}[\p{L}\p{N}'’-]*(?:\s\p{Lu}[\p{L}\p{N}'’-]*)*/gu)) {
    const beginsSentence = /(?:^|[.!?:]\s*)$/.test(text.slice(0, match.index));
    const words = match[0]
      .split(/\s/)
      .filter((word, index) => !(index === 0 && (beginsSentence || isStopWord(word.toLowerCase()))) && word !== "I");
    if (words.length > 0) names.push(words.join(" "));
  }
  return [...new Set(names)];
}

/** "city: Oslo", "amount = 12", "count of 3". */
function labelledValue(parameter: Parameter, message: string): Json | undefined {
  const name = parameter.name.replaceAll(/[^\w]/g, "\\$&").replaceAll(/[_-]|(?<=[a-z])(?=[A-Z])/g, "[ _-]?");
  const found = new RegExp(`\\b${name}\\s*[:=]\\s*(?:"([^"\\n]*)"|([^\\s,;"]+))`, "i").exec(message);
  const value = found?.[1] ?? found?.[2];
  return value === undefined ? undefined : converted(parameter, value);
}

function chosenValue(parameter: Parameter, message: string): Json | undefined {
  if (parameter.choices.length === 0) return undefined;
  const stems = wordsOf(message).map((word) => word.stem);
  return parameter.choices.find((choice) => {
    const words = wordsOf(choiceText(choice)).map((word) => word.stem);
    return words.length > 0 && words.every((word) => stems.includes(word));
  });
}

function nextValue(parameter: Parameter, material: Material, requiredCount: number): Json | undefined {
  if (parameter.choices.length > 0) return parameter.choices.length === 1 ? parameter.choices[0] : undefined;
  switch (parameter.type) {
    case "number":
    case "integer":
      return takeNumber(material.numbers, parameter.type === "integer");
    case "boolean":
      return /\b(?:true|yes|on)\b/i.test(material.text)
        ? true
        : /\b(?:false|no|off)\b/i.test(material.text)
          ? false
          : undefined;
    case "array":
      return wholeList(parameter, material);
    case "string":
      return nextText(parameter, material, requiredCount);
    default:
      return undefined;
  }
}

function takeNumber(numbers: number[], isInteger: boolean): number | undefined {
  const at = numbers.findIndex((number) => !isInteger || Number.isInteger(number));
  return at < 0 ? undefined : numbers.splice(at, 1)[0];
}

function wholeList(parameter: Parameter, material: Material): Json | undefined {
  const isNumeric = parameter.itemType === "number" || parameter.itemType === "integer";
  const list: Json[] = isNumeric
    ? material.numbers.splice(0)
    : [...material.quotations.splice(0), ...material.names.splice(0)];
  return list.length === 0 ? undefined : list;
}

function nextText(parameter: Parameter, material: Material, requiredCount: number): string | undefined {
  const special = textOfFormat(parameter, material.text);
  if (special !== undefined) return special;
  const quotation = material.quotations.shift();
  if (quotation !== undefined) return quotation;
  const name = material.names.shift();
  if (name !== undefined && !isFreeText(parameter)) return name;
  const prepositional =
    /\b(?:in|for|of|to|about|named|called|from|at|with)\s+(?:the\s+)?([^?.!,;]{1,80}?)\s*(?:[?.!,;]|$)/i.exec(
      material.text,
    )?.[1];
  if (isFreeText(parameter) && requiredCount === 1) return material.text.trim();
  return prepositional;
}

function textOfFormat(parameter: Parameter, text: string): string | undefined {
  if (parameter.format === "email" || /e-?mail/i.test(parameter.name))
    return /[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+/.exec(text)?.[0];
  if (parameter.format === "uri" || /^ur[il]$/i.test(parameter.name)) return /https?:\/\/[^\s"'<>]+/.exec(text)?.[0];
  if (parameter.format?.startsWith("date") === true || /date|day/i.test(parameter.name))
    return /\b\d{4}-\d{2}-\d{2}(?:T[\d:.Z+-]+)?/.exec(text)?.[0];
  return fileParameter.test(parameter.name) ? pathsIn(text)[0] : undefined;
}

function isFreeText(parameter: Parameter): boolean {
  return /^(?:query|q|text|question|input|prompt|message|content|task|body|note|expression|request)$/i.test(
    parameter.name,
  );
}

function converted(parameter: Parameter, value: string): Json | undefined {
  if (parameter.choices.length > 0)
    return parameter.choices.find((choice) => choiceText(choice).toLowerCase() === value.toLowerCase());
  if (parameter.type === "string") return value;
  if (parameter.type === "boolean")
    return /^(?:true|yes|on)$/i.test(value) ? true : /^(?:false|no|off)$/i.test(value) ? false : undefined;
  const number = Number(value.replace(/[.?!]$/, ""));
  const isNumeric = parameter.type === "number" || parameter.type === "integer";
  return isNumeric && value !== "" && Number.isFinite(number) ? number : undefined;
}

/** A value that a parameter is restricted to, as a person writes it. */
export function choiceText(choice: Json): string {
  return typeof choice === "string" ? choice : JSON.stringify(choice);
}

/** The parameters of a tool's object schema, in order; empty for schemas of any other shape. */
export function parametersOf(tool: ModelTool): Parameter[] {
  const properties = objectAt(tool.parameters, "properties");
  if (properties === undefined) return [];
  const required = tool.parameters["required"];
  const isRequired = new Set(Array.isArray(required) ? required : []);
  return Object.keys(properties).map((name) =>
    readParameter(name, objectAt(properties, name) ?? {}, isRequired.has(name)),
  );
}

function readParameter(name: string, schema: JsonObject, isRequired: boolean): Parameter {
  const plain = firstOption(schema);
  const choices = plain["const"] === undefined ? plain["enum"] : [plain["const"]];
  return {
    name,
    type: typeName(plain),
    isRequired,
    choices: Array.isArray(choices) ? choices : [],
    format: textAt(plain, "format"),
    itemType: typeName(objectAt(plain, "items") ?? {}),
  };
}

/** The first branch of `anyOf` and `oneOf` that is not null: how optional and nullable values are written. */
function firstOption(schema: JsonObject): JsonObject {
  const options = schema["anyOf"] ?? schema["oneOf"];
  if (!Array.isArray(options)) return schema;
  const objects = options.filter(
    (option): option is JsonObject => typeof option === "object" && option !== null && !Array.isArray(option),
  );
  return objects.find((option) => option["type"] !== "null") ?? schema;
}

function typeName(schema: JsonObject): string {
  const type = schema["type"];
  if (typeof type === "string") return type;
  if (Array.isArray(type))
    return type.find((name): name is string => typeof name === "string" && name !== "null") ?? "string";
  return schema["properties"] === undefined ? "string" : "object";
}

function objectAt(object: JsonObject, name: string): JsonObject | undefined {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

function textAt(object: JsonObject, name: string): string | undefined {
  const value = object[name];
  return typeof value === "string" ? value : undefined;
}
