// Random values are the same in each run, so that a run can be repeated; `TROUPE_SEED` gives others. A property draws as many cases
// as the library likes, in the quick run fewer.
import { configureGlobal } from "fast-check";
import { amount } from "./full.ts";

configureGlobal({ seed: Number(process.env["TROUPE_SEED"] ?? 20_261_121), numRuns: amount(100, 25) });
