// Random values are the same in each run, so that a run can be repeated; `TROUPE_SEED` gives others.
import { configureGlobal } from "fast-check";

configureGlobal({ seed: Number(process.env["TROUPE_SEED"] ?? 20_261_121) });
