import { turnIdOf } from "../../src/state/index.ts";

/** A time in the past. The stores never read a clock themselves. */
export const NOW = 1_700_000_000_000;
export const TENANT = "acme";
export const ROOT = "desk";
export const TURN = turnIdOf(ROOT, 1);
