// Small components for many views: phase icons, other icons, limit bars, a checkbox.
import type { Signal } from "@preact/signals";
import type { Phase } from "../run-model/agent-moment.ts";
import { type LimitUse, shareOf } from "../run-model/limit-use.ts";
import { amountText, limitWord } from "./format.ts";

export { phaseWords } from "../run-model/agent-moment.ts";

/** Each phase has a shape in addition to its colour, drawn on a 12 × 12 grid. */
const shapes: Readonly<Record<Phase, string>> = {
  thinking: "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1Z",
  tools: "M2 2h8v8H2Z",
  waiting: "M2.5 1.5h7L6 6l3.500 4.500h-7L6 6Z",
  asking: "M6 .5 11.500 6 6 11.500.5 6Z",
  budget: "M6 1 11.500 11H.5Z",
  retrying: "M10.500 2v3.500H7M10 5.300A4.300 4.300 0 1 0 10.200 7.500",
  paused: "M2.500 2h2.500v8H2.500ZM7 2h2.500v8H7Z",
  lost: "M6.500.500 3 6.500h2.500L4.500 11.500 9.500 4.800H6.800L8.500.500Z",
  failed: "M2 2l8 8M10 2l-8 8",
  stopped: "M4 1h4l3 3v4l-3 3H4L1 8V4Z",
  done: "M1.500 6.500l3 3 6-7",
  ready: "M6 2a4 4 0 1 0 0 8 4 4 0 0 0 0-8Z",
  starting: "M6 2a4 4 0 1 0 0 8 4 4 0 0 0 0-8Z",
  created: "M6 2a4 4 0 1 0 0 8 4 4 0 0 0 0-8Z",
  shutdown: "M2 6h8",
};

const drawnAsLine: ReadonlySet<Phase> = new Set([
  "retrying",
  "failed",
  "done",
  "ready",
  "starting",
  "created",
  "shutdown",
]);

export function PhaseIcon({ phase }: { readonly phase: Phase }) {
  return (
    <svg class={`phase-icon ${phase}${drawnAsLine.has(phase) ? " line" : ""}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={shapes[phase]} />
    </svg>
  );
}

const paths = {
  play: "M5 3l8 5-8 5Z",
  pause: "M4 3h3v10H4ZM9 3h3v10H9Z",
  back: "M11 3L5 8l6 5Z M3 3h1.500v10H3Z",
  forward: "M5 3l6 5-6 5Z M11.500 3H13v10h-1.500Z",
  chevron: "M5.500 3.500L10 8l-4.500 4.500",
  search: "M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9ZM10.300 10.300L14 14",
  help: "M6 6a2 2 0 1 1 2.800 1.800c-.6.3-.8.6-.8 1.400M8 11.600v.2",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6ZM8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M12.600 3.400l-1 1M4.400 11.600l-1 1",
  moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500Z",
  system: "M2 3h12v8H2ZM6 13.500h4",
  copy: "M5.500 5.500h7v8h-7ZM3.500 10.500v-8h7",
  link: "M7 5L9 3a2.500 2.500 0 0 1 4 4l-2 2M9 11l-2 2a2.500 2.500 0 0 1-4-4l2-2M6 10l4-4",
  close: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2.500 6V2.500H6M10 2.500h3.500V6M13.500 10v3.500H10M6 13.500H2.500V10",
  runs: "M2.500 4h11M2.500 8h11M2.500 12h11",
} as const;

export type IconName = keyof typeof paths;
const filled: ReadonlySet<IconName> = new Set(["play", "pause", "back", "forward"]);

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class={filled.has(name) ? "icon filled" : "icon"} viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

/** A bar of a limit: used, reserved (hatched), unconfirmed (dotted). */
export function LimitBar({ use, isWide = false }: { readonly use: LimitUse; readonly isWide?: boolean }) {
  const { limit, used, reserved, unconfirmed, max } = use;
  const part = (amount: number): string => `${max === 0 ? 100 : Math.min(100, (amount / max) * 100)}%`;
  const share = Math.round(shareOf(use) * 100);
  const state = share >= 100 ? " full" : share >= 80 ? " high" : "";
  return (
    <span
      class={`limit-bar${isWide ? " wide" : ""}${state}`}
      role="meter"
      aria-label={limitWord(limit)}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuenow={Math.min(max, used)}
      aria-valuetext={limitTitle(use)}
      title={limitTitle(use)}
    >
      <span class="bar-used" style={{ width: part(used) }} />
      {unconfirmed > 0 && <span class="bar-unconfirmed" style={{ width: part(unconfirmed) }} />}
      {reserved > 0 && <span class="bar-reserved" style={{ width: part(reserved) }} />}
    </span>
  );
}

export function limitTitle({ limit, used, reserved, unconfirmed, max }: LimitUse): string {
  const more = [
    reserved > 0 ? `${amountText(limit, reserved)} reserved` : "",
    unconfirmed > 0 ? `${amountText(limit, unconfirmed)} unconfirmed` : "",
  ].filter((part) => part !== "");
  const figures = `${amountText(limit, used)} of ${amountText(limit, max)} ${limitWord(limit)} used`;
  return [figures, ...more].join(", ");
}

/** A checkbox bound to a signal. */
export function Check({ label, of }: { readonly label: string; readonly of: Signal<boolean> }) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={of.value}
        onChange={({ currentTarget }) => {
          of.value = currentTarget.checked;
        }}
      />
      {label}
    </label>
  );
}
