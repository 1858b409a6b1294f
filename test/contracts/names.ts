import { turnIdOf } from "../../src/state/index.ts";

/** A moment in the past: the stores never look at a clock of their own. */
export const NOW = 1_700_000_000_000;
export const TENANT = "acme";
export const ROOT = "desk";
export const TURN = turnIdOf(ROOT, 1);
