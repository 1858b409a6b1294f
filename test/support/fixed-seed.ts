// Random values are the same in each run, so that a run can be repeated; `TROUPE_SEED` changes them. A property draws the library's
// default number of cases, fewer in the quick run.
import { configureGlobal } from "fast-check";
import { amount } from "./full.ts";

configureGlobal({ seed: Number(process.env["TROUPE_SEED"] ?? 20_261_121), numRuns: amount(100, 25) });
