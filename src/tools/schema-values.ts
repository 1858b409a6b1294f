import { stableStringify } from "../base/index.ts";
import type { SchemaObject } from "./schema-document.ts";
import { hasFormat } from "./schema-formats.ts";
import type { Checking, Visit } from "./schema-visit.ts";
import type { StepLimit } from "./step-limit.ts";

const types: ReadonlySet<unknown> = new Set(["null", "boolean", "number", "integer", "string", "array", "object"]);

/** Types that no draft knows (`any`, `file`) say nothing. */
export function isOfType(value: unknown, { type, nullable }: SchemaObject): boolean {
  const wanted: readonly unknown[] = Array.isArray(type) ? type : [type];
  if (!wanted.every((one) => types.has(one))) return true;
  return wanted.some((one) => isA(value, one)) || (value === null && nullable === true);
}

function isA(value: unknown, type: unknown): boolean {
  if (value === null) return type === "null";
  if (Array.isArray(value)) return type === "array";
  return typeof value === type || (type === "integer" && Number.isInteger(value));
}

/** Comparing costs as much as both are long. */
export function isSame(one: unknown, other: unknown, limit: StepLimit): boolean {
  if (typeof one !== typeof other) return false;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) {
    if (typeof one === "string") limit.spend(one.length >> 3);
    return one === other;
  }
  return textOf(one, limit) === textOf(other, limit);
}

/** As text, equal values are equal whatever the order of their members. */
export function textOf(value: unknown, limit: StepLimit): string {
  const text = stableStringify(value);
  limit.spend(10 + (text.length >> 2));
  return text;
}

interface KnownList {
  readonly texts: ReadonlySet<string>;
  readonly shown: string;
}

/** Each list of a schema is written out once: a value is compared with all of it by one look. */
const lists = new WeakMap<readonly unknown[], KnownList>();

function known(allowed: readonly unknown[]): KnownList {
  let list = lists.get(allowed);
  if (list === undefined) {
    const shown = allowed.slice(0, 20).map((one) => JSON.stringify(one));
    list = { texts: new Set(allowed.map((one) => stableStringify(one))), shown: shown.join(", ").slice(0, 400) };
    lists.set(allowed, list);
  }
  return list;
}

export function isAmong(value: unknown, allowed: readonly unknown[], limit: StepLimit): boolean {
  return known(allowed).texts.has(textOf(value, limit));
}

export function shownList(allowed: readonly unknown[]): string {
  return `one of ${known(allowed).shown}`;
}

/** Numbers and strings. */
export function checkScalar(check: Checking, visit: Visit): boolean {
  if (typeof visit.value === "number") return checkNumber(check, visit, visit.value);
  if (typeof visit.value === "string") return checkString(check, visit, visit.value);
  return true;
}

function checkNumber(check: Checking, { schema, place }: Visit, value: number): boolean {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  let fits = true;
  // In draft-04 the exclusive limits are flags of the others.
  const least = exclusiveMinimum === true ? minimum : exclusiveMinimum;
  const most = exclusiveMaximum === true ? maximum : exclusiveMaximum;
  if (typeof least === "number" && value <= least) fits = check.fail(place, `must be > ${least}`);
  else if (typeof minimum === "number" && value < minimum) fits = check.fail(place, `must be >= ${minimum}`);
  if (typeof most === "number" && value >= most) fits = check.fail(place, `must be < ${most}`);
  else if (typeof maximum === "number" && value > maximum) fits = check.fail(place, `must be <= ${maximum}`);
  if (typeof multipleOf === "number" && multipleOf > 0 && !isMultiple(value, multipleOf)) {
    fits = check.fail(place, `must be multiple of ${multipleOf}`);
  }
  return fits;
}

/** 0.3 is a multiple of 0.1, whatever their quotient is in binary. */
function isMultiple(value: number, of: number): boolean {
  const quotient = value / of;
  if (!Number.isFinite(quotient)) return Number.isInteger(value);
  return Math.abs(quotient - Math.round(quotient)) <= 4 * Number.EPSILON * Math.max(1, Math.abs(quotient));
}

function checkString(check: Checking, { schema, place }: Visit, value: string): boolean {
  const { minLength, maxLength, pattern, format } = schema;
  let fits = true;
  if (typeof minLength === "number" && isShorter(value, minLength)) {
    fits = check.fail(place, `must have at least ${minLength} characters`);
  }
  if (typeof maxLength === "number" && !isShorter(value, maxLength + 1)) {
    fits = check.fail(place, `must have at most ${maxLength} characters`);
  }
  if (typeof pattern === "string" && check.document.pattern(pattern)?.test(value) === false) {
    fits = check.fail(place, `must match pattern ${JSON.stringify(pattern.slice(0, 200))}`);
  }
  if (typeof format === "string" && hasFormat(value, format) === false) {
    fits = check.fail(place, `must match format ${JSON.stringify(format)}`);
  }
  return fits;
}

/** Characters are code points; they are counted only where the UTF-16 units leave it open. */
function isShorter(text: string, length: number): boolean {
  if (text.length < length) return true;
  if (text.length >= length * 2) return false;
  let pairs = 0;
  for (let at = 0; at < text.length - 1; at += 1) {
    if ((text.codePointAt(at) ?? 0) <= 0xff_ff) continue;
    pairs += 1;
    at += 1;
  }
  return text.length - pairs < length;
}
