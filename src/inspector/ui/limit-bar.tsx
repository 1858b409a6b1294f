import { type LimitUse, shareOf } from "../run-model/limit-use.ts";
import { amountText, limitWord } from "./format.ts";

/** How full a limit is: used, reserved (hatched), unconfirmed (dotted). */
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
