import { describeValue, toJson } from "../../base/index.ts";
import type { Failure, InputIssue } from "../core/failures.ts";

/** pydantic's messages for this surface's schemas. `Field required` stands for a missing value. */
function orMissing(message: string) {
  return ({ input }: { readonly input?: unknown }): string => (input === undefined ? missing : message);
}
const missing = "Field required";
const string = "Input should be a valid string";
const list = "Input should be a valid list";
const dictionary = "Input should be a valid dictionary";
const object = "Input should be a valid dictionary or object to extract fields from";
const uuid = "Input should be a valid UUID";
const contentType = "Input should be 'image' or 'text'";
const items = "List should have at least 1 item after validation, not 0";

export const words = {
  text: orMissing(string),
  list: orMissing(list),
  dictionary: orMissing(dictionary),
  object: orMissing(object),
  contentType,
  uuid,
  items,
  image: "Value error, an image should be a data: URL in base64 or an https: URL",
} as const;

/** pydantic's types of its messages; other messages have the type `value_error`. */
const types: Readonly<Record<string, string>> = {
  [missing]: "missing",
  [string]: "string_type",
  [list]: "list_type",
  [dictionary]: "dict_type",
  [object]: "model_attributes_type",
  [uuid]: "uuid_parsing",
  [contentType]: "enum",
  [items]: "too_short",
};

/** One entry of the `detail` of a 422. */
export interface Detail {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly input: unknown;
}

/** An error for invalid input, in FastAPI's form. */
export function unprocessable(details: readonly Detail[], headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json({ detail: details }, { status: 422, headers });
}

export function valueError(loc: Detail["loc"], message: string, input: unknown): Detail {
  return { type: "value_error", loc, msg: `Value error, ${message}`, input: shown(input) };
}

/** The answer to a failure in FastAPI's form: `{ detail }`; for invalid input a list of the fields, with status 422. */
export function tealFailure({ status, code, message, headers, issues }: Failure): Response {
  if (issues.length > 0) return unprocessable(issues.map(detailOf), headers);
  if (code === "invalid_input") {
    return unprocessable([{ type: "json_invalid", loc: ["body"], msg: message, input: {} }], headers);
  }
  return Response.json({ detail: status === 404 ? "Not Found" : message }, { status, headers });
}

function detailOf({ in: part, path, message, input }: InputIssue): Detail {
  return { type: types[message] ?? "value_error", loc: [part, ...path], msg: message, input: shown(input) };
}

const LONGEST_INPUT = 1_000;

/** The invalid value, unless it is long: an image is not sent back. */
function shown(input: unknown): unknown {
  if (input === undefined) return null;
  const copied = toJson(input, { maxSize: LONGEST_INPUT });
  return copied.ok ? copied.json : describeValue(input);
}
