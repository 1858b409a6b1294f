import type { ForkedFrom } from "../../state/index.ts";

/** `850 ms`, `4.2 s`, `1 m 05 s`, `2 h 03 m`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  if (milliseconds < 59_950) return `${(milliseconds / 1_000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${twoDigits(seconds % 60)} s`;
  const minutes = Math.round(milliseconds / 60_000);
  return `${Math.floor(minutes / 60)} h ${twoDigits(minutes % 60)} m`;
}

/** Like `formatDuration`, but in whole seconds while running, so that the line is stable: `42 s`, `1 m 05 s`. */
export function formatRunningTime(milliseconds: number): string {
  if (milliseconds < 60_000) return `${Math.max(0, Math.floor(milliseconds / 1_000))} s`;
  return formatDuration(Math.floor(milliseconds / 1_000) * 1_000);
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

/** `950`, `1.2k`, `12k`, `1.2M`. */
export function formatCount(value: number): string {
  if (value < 1_000) return String(value);
  if (value < 9_950) return `${trimmed(value / 1_000)}k`;
  if (value < 999_500) return `${Math.round(value / 1_000)}k`;
  return `${value < 9_950_000 ? trimmed(value / 1_000_000) : Math.round(value / 1_000_000)}M`;
}

function trimmed(value: number): string {
  return value.toFixed(1).replace(/\.0$/, "");
}

/** The input of model calls, as any usage has it. */
export interface InputUse {
  readonly inputTokens: number;
  readonly cachedInputTokens?: number | undefined;
}

/** `80 % cached`; `undefined` if the provider read none of the input from its cache. */
export function formatCached({ inputTokens, cachedInputTokens = 0 }: InputUse): string | undefined {
  if (inputTokens === 0 || cachedInputTokens === 0) return undefined;
  const share = cachedInputTokens / inputTokens;
  return share < 0.01 ? "< 1 % cached" : `${Math.round(share * 100)} % cached`;
}

/** Millionths of a dollar as dollars: `$0`, `$0.0042`, `$1.25`; `?` for an unknown price. */
export function formatCost(micros: number | null): string {
  if (micros === null) return "?";
  if (micros === 0) return "$0";
  const dollars = micros / 1_000_000;
  if (dollars >= 0.1) return `$${dollars.toFixed(2)}`;
  return `$${dollars < 0.0001 ? dollars.toFixed(6) : dollars.toFixed(4)}`;
}

/** `3/12`, or `3` without a limit. */
export function formatOf(used: string, limit: string | undefined): string {
  return limit === undefined ? used : `${used}/${limit}`;
}

/** `2026-11-21 14:03`, in the machine's local time. */
export function formatTime(milliseconds: number): string {
  const date = new Date(milliseconds);
  const day = [date.getFullYear(), twoDigits(date.getMonth() + 1), twoDigits(date.getDate())].join("-");
  return `${day} ${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`;
}

/** When an account above the agents renews; `null` if it never does. One whose window has ended renews with its next call. */
export function renewalText(renewsAt: number | null, now: number): string {
  if (renewsAt === null) return "never";
  return renewsAt <= now ? "with its next call" : formatTime(renewsAt);
}

/** `1 reader`, `2 readers`. */
export function formatNumberOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

const consonants = "bdfgklmnprstvz";
const vowels = "aeiou";

/** The origin of a fork: `run-mibodu at 2:3`. */
export function forkText({ agentId, turn, step }: ForkedFrom): string {
  return `${agentId} at ${step === undefined ? turn : `${turn}:${step}`}`;
}

/** A short id that can be read aloud and typed: `ask-` and three syllables, one of 343,000. */
export function readableId(prefix: string, random: () => number): string {
  const pick = (letters: string): string => letters.charAt(Math.floor(random() * letters.length));
  const syllables = Array.from({ length: 3 }, () => pick(consonants) + pick(vowels));
  return `${prefix}-${syllables.join("")}`;
}

/** Name of a subagent next to its root: the first digits of its hash. */
export function shortAgentId(agentId: string): string {
  const end = agentId.indexOf("~");
  return end < 0 ? agentId : agentId.slice(end, end + 7);
}
