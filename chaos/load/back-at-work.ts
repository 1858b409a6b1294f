import { setTimeout as delay } from "node:timers/promises";
import { steadyNow } from "../witness.ts";
import type { Scene } from "./run-load.ts";

/** Every process must work again this many milliseconds after Redis is back. */
export const BACK_MS = 10_000;

/** Waits until every process has committed something that it sent after the call. A process that has not is a violation. */
export async function backAtWork({
  witnesses,
}: Scene): Promise<{ readonly ms: number; readonly late: readonly string[] }> {
  const from = steadyNow();
  const isBack = (reader: Scene["witnesses"][number]): boolean =>
    reader.lines().some((line) => line.type === "committed" && line.at > from);
  while (!witnesses.every(isBack) && steadyNow() - from < BACK_MS) await delay(20);
  const late = witnesses.filter((reader) => !isBack(reader)).length;
  return { ms: steadyNow() - from, late: late === 0 ? [] : [`${late} processes did not work ${BACK_MS} ms after`] };
}
