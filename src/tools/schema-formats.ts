import { isIPv4, isIPv6 } from "node:net";
import { maxPatternLength } from "./pattern-syntax.ts";

/*
 * What `format` says of a string. Every expression is linear in its text: no quantifier is followed by what it could have
 * matched itself, or both are bounded. Formats that are not here say nothing.
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
  return !/^:/.test(text) && URL.canParse(text, "troupe://base/path");
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

/** Whether the text has the format; undefined where nothing is known of it. */
export function hasFormat(text: string, format: string): boolean | undefined {
  return Object.hasOwn(formats, format) ? formats[format]?.(text) : undefined;
}
