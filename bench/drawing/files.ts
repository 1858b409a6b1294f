import type { RunFigures } from "../report.ts";
import { scenarios } from "../scenario.ts";
import { barPicture } from "./bars.ts";
import { growthIn, linePicture } from "./lines.ts";

/** File contents by path in the repository. */
export function filesOf(figures: RunFigures): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  const keep = (name: string, studies: readonly string[]): void => {
    const kept = { ...figures, scenarios: figures.scenarios.filter((row) => studies.includes(row.name)) };
    files.set(`bench/pictures/${name}.json`, `${JSON.stringify(kept, null, 2)}\n`);
  };
  const known = scenarios.map(({ name }) => name);
  if (figures.scenarios.some(({ name }) => known.includes(name))) {
    files.set("docs/pictures/bench.svg", barPicture(figures));
    keep("scenarios", known);
  }
  const growth = growthIn(figures);
  for (const study of growth) files.set(`bench/pictures/${study}.svg`, linePicture(study, figures));
  if (growth.length > 0) keep("growth", growth);
  return files;
}
