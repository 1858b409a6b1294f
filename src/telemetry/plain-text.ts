import { stripVTControlCharacters } from "node:util";

/** Maximum number of characters of a text that are processed for an excerpt. */
const mostLookedAt = 10_000;

/**
 * Makes foreign text safe to print on one line: texts of models and files may contain escape sequences that move the
 * cursor or rename the window. At most `longest` characters; a cut is shown as `…`.
 */
export function oneLine(text: string, longest: number): string {
  const line = stripVTControlCharacters(text.slice(0, Math.max(mostLookedAt, longest)))
    .replaceAll(/[\p{Control}\p{Zl}\p{Zp}\s]+/gu, " ")
    .replaceAll(/[\u200B-\u200F\u202A-\u202E\u2066-\u2069]/gu, "")
    .trim();
  if (line.length <= longest && text.length <= mostLookedAt) return line;
  // Removes half a surrogate pair at the cut.
  const kept = line.slice(0, Math.max(0, longest - 1)).replace(/[\uD800-\uDBFF]$/, "");
  return `${kept.trimEnd()}…`;
}

/** `850 ms`, `4.2 s`, `1 m 05 s`, `2 h 03 m`. */
export function durationText(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  if (milliseconds < 59_950) return `${(milliseconds / 1_000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${twoDigits(seconds % 60)} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${twoDigits(minutes % 60)} m`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

/** Millionths of a dollar as dollars: `$0`, `$0.000042`, `$1.25`; `unknown cost` for an unknown price. */
export function costText(micros: number | null): string {
  if (micros === null) return "unknown cost";
  if (micros === 0) return "$0";
  const dollars = micros / 1_000_000;
  return `$${dollars >= 0.1 ? dollars.toFixed(2) : dollars.toFixed(6).replace(/0{1,2}$/, "")}`;
}

/** `1 step`, `2 steps`. */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
