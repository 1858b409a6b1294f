import type { Json, JsonObject, ModelTool } from "../state/index.ts";

/** A parameter of a tool, as its JSON Schema tells it. */
export interface Parameter {
  readonly name: string;
  readonly type: string;
  readonly description: string;
  readonly isRequired: boolean;
  /** The values it is restricted to, if it is. */
  readonly choices: readonly Json[];
  readonly format: string | undefined;
  readonly maximum: number | undefined;
  /** Type of an array's items. */
  readonly itemType: string | undefined;
}

/** What the engine takes the tools for, judged by their names, descriptions and parameters. */
export interface Toolbox {
  readonly delegates: readonly ModelTool[];
  readonly list: ModelTool | undefined;
  readonly search: ModelTool | undefined;
  readonly read: ModelTool | undefined;
  readonly others: readonly ModelTool[];
}

export const questionParameter = /^(?:question|task|input|prompt|request|instructions?|message|goal|query)$/i;
export const fileParameter = /^(?:file|path|document|source|file_?name|file_?path)$/i;
export const queryParameter = /^(?:query|q|keywords?|terms?|search|text|pattern)$/i;
export const limitParameter = /^(?:max_?results|limit|max|count|top_?k|max_?hits)$/i;
export const firstLineParameter = /^(?:start|start_?line|from|from_?line|first_?line|offset|line)$/i;
export const lastLineParameter = /^(?:end|end_?line|to|to_?line|last_?line)$/i;

/** Sorts tools by what they are good for. A tool that fits nothing is one of the others. */
export function toolboxOf(tools: readonly ModelTool[]): Toolbox {
  const delegates = tools.filter(isDelegate);
  const rest = tools.filter((tool) => !delegates.includes(tool));
  const list = rest.find(
    (tool) =>
      says(tool, /\b(?:lists?|listing)\b.*\b(?:files?|documents?|folders?|director(?:y|ies))\b/i) &&
      requiredOf(tool).length === 0,
  );
  const search = rest.find(
    (tool) =>
      tool !== list &&
      says(tool, /\b(?:search|searches|find|finds|grep)\b/i) &&
      isOverFiles(tool) &&
      has(tool, queryParameter),
  );
  const read = rest.find(
    (tool) =>
      tool !== list && tool !== search && says(tool, /\b(?:reads?|opens?|contents?)\b/i) && has(tool, fileParameter),
  );
  const known = new Set([...delegates, list, search, read]);
  return { delegates, list, search, read, others: tools.filter((tool) => !known.has(tool)) };
}

function isDelegate(tool: ModelTool): boolean {
  return (
    has(tool, questionParameter) &&
    says(tool, /\b(?:sub-?agents?|delegat(?:e|es|ing|ion)|readers?|another agent|an? (?:\w+ )?agent)\b/i)
  );
}

function isOverFiles(tool: ModelTool): boolean {
  return says(tool, /\b(?:files?|documents?|docs|folders?|text|lines?|pages?)\b/i);
}

function says(tool: ModelTool, pattern: RegExp): boolean {
  return pattern.test(`${tool.name.replaceAll(/[_-]/g, " ")}. ${tool.description.replaceAll(/\s+/g, " ")}`);
}

function has(tool: ModelTool, pattern: RegExp): boolean {
  return parametersOf(tool).some((parameter) => pattern.test(parameter.name) && parameter.type === "string");
}

export function requiredOf(tool: ModelTool): Parameter[] {
  return parametersOf(tool).filter((parameter) => parameter.isRequired);
}

export function parameterOf(tool: ModelTool, pattern: RegExp): Parameter | undefined {
  return parametersOf(tool).find((parameter) => pattern.test(parameter.name));
}

/** The parameters of a tool's object schema, in its order; a schema of another shape has none that are known. */
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
    description: textAt(schema, "description") ?? textAt(plain, "description") ?? "",
    isRequired,
    choices: Array.isArray(choices) ? choices : [],
    format: textAt(plain, "format"),
    maximum: typeof plain["maximum"] === "number" ? plain["maximum"] : undefined,
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
