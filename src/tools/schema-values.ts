import { isIPv4, isIPv6 } from "node:net";
import { stableStringify } from "../base/index.ts";
import { maxPatternLength, type StepLimit } from "./linear-pattern.ts";
import type { Checking, SchemaObject, Visit } from "./schema-document.ts";

const types: ReadonlySet<unknown> = new Set(["null", "boolean", "number", "integer", "string", "array", "object"]);

/** Types that are in no draft (`any`, `file`) allow every value. */
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

/** Comparing costs steps by the length of both. */
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

/** Each list of a schema is turned to text once, so that a value is found in it by one lookup. */
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
  if (format === "regex") check.limit.spend(100);
  if (typeof format === "string" && hasFormat(value, format) === false) {
    fits = check.fail(place, `must match format ${JSON.stringify(format)}`);
  }
  return fits;
}

/** Characters are code points; they are counted only where the number of UTF-16 units does not decide. */
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

/*
 * Checks of `format`. Every expression is linear in its text: no quantifier is followed by something that it could have matched
 * itself, or both are bounded. Formats that are not here say nothing.
 */

type Format = (text: string) => boolean;

const dateParts = /^(\d{4})-(\d\d)-(\d\d)$/;
const timeParts = /^(\d\d):(\d\d):(\d\d)(?:\.\d{1,30})?(?:z|[+-](\d\d):?(\d\d)?)?$/i;
const zone = /(?:z|[+-]\d\d:?(?:\d\d)?)$/i;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;
const escapes = /%(?![0-9a-f]{2})/i;
/** Controls, blanks and what URIs must escape. */
const notInUri = /[\0-\x20"<>\\^`{|}\x7f-\u{10ffff}]/u;
const scheme = /^[a-z][a-z0-9+.-]*:/i;

function isDate(text: string): boolean {
  const [, year = 0, month = 0, day = 0] = dateParts.exec(text)?.map(Number) ?? [];
  if (month < 1 || month > 12 || day < 1) return false;
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return day <= (month === 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31);
}

function isTime(text: string): boolean {
  const [, hour = 99, minute = 99, second = 99, zoneHour, zoneMinute] = timeParts.exec(text)?.map(Number) ?? [];
  // A leap second is the last one of a day somewhere.
  return hour <= 23 && minute <= 59 && second <= 60 && !((zoneHour ?? 0) > 23) && !((zoneMinute ?? 0) > 59);
}

function isDateTime(text: string): boolean {
  return isDate(text.slice(0, 10)) && /^[t\s]$/i.test(text.slice(10, 11)) && isTime(text.slice(11));
}

function isHostname(text: string): boolean {
  const name = text.endsWith(".") ? text.slice(0, -1) : text;
  return name.length <= 253 && name.split(".").every((part) => label.test(part));
}

function isEmail(text: string): boolean {
  const at = text.lastIndexOf("@");
  const [name, host] = [text.slice(0, at), text.slice(at + 1)];
  const isName = name.length <= 320 && /^[a-z0-9!#$%&'*+/=?^_`{|}~.-]+$/i.test(name);
  return at > 0 && isName && !/^\.|\.\.|\.$/.test(name) && host.includes(".") && isHostname(host);
}

function isUriReference(text: string): boolean {
  if (notInUri.test(text) || escapes.test(text) || text.split("#", 3).length > 2) return false;
  return !text.startsWith(":") && URL.canParse(text, "troupe://base/path");
}

function isUri(text: string): boolean {
  return scheme.test(text) && isUriReference(text);
}

function isExpression(text: string): boolean {
  try {
    return text.length <= maxPatternLength && new RegExp(text, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

function isPointer(text: string): boolean {
  return (text === "" || text.startsWith("/")) && !/~(?![01])/.test(text);
}

function isRelativePointer(text: string): boolean {
  const [start] = /^(?:0|[1-9]\d*)/.exec(text) ?? [];
  if (start === undefined) return false;
  const rest = text.slice(start.length);
  return rest === "#" || isPointer(rest);
}

function isDuration(text: string): boolean {
  if (/^P\d+W$/.test(text)) return true;
  return /^P(?=[\dT])(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?$/.test(text);
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[a-z0-9+/]*={0,2}$/i.test(text);
}

const formats: Readonly<Record<string, Format>> = {
  date: isDate,
  time: (text) => isTime(text) && zone.test(text),
  "date-time": (text) => isDateTime(text) && zone.test(text),
  "iso-time": isTime,
  "iso-date-time": isDateTime,
  duration: isDuration,
  email: isEmail,
  hostname: isHostname,
  ipv4: isIPv4,
  ipv6: (text) => isIPv6(text) && !text.includes("%"),
  uri: isUri,
  url: (text) => /^(?:https?|ftp):\/\/[^\s/]/i.test(text) && !/\s/.test(text) && URL.canParse(text),
  "uri-reference": isUriReference,
  uuid: (text) => /^(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(text),
  regex: isExpression,
  "json-pointer": isPointer,
  "relative-json-pointer": isRelativePointer,
  byte: isBase64,
};

/** Whether the text has the format; undefined for an unknown format. */
function hasFormat(text: string, format: string): boolean | undefined {
  return Object.hasOwn(formats, format) ? formats[format]?.(text) : undefined;
}
