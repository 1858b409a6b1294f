/**
 * The process of one study, started by `main.ts`. Separate processes keep V8's compiled code and heap of one study from
 * affecting the next. Arguments: the study's name, and the options as JSON. Sends the rows to its parent, and exits with
 * it.
 */
import { startModelProcess } from "./model-process.ts";
import type { Options } from "./options.ts";
import { loadPeer, takingPart } from "./peers/index.ts";
import { type DetailedRow, rowsOf } from "./report.ts";
import { interleave, sidesOf } from "./rounds.ts";
import { studies } from "./studies/index.ts";
import { againstThemselves } from "./study.ts";

export type StudyOptions = Pick<Options, "quick" | "self" | "peers">;

/** The rows; none if the study cannot run on this machine. Prints the reason, or the duration, to standard error. */
async function rowsOfStudy(name: string, { quick, self, peers }: StudyOptions): Promise<readonly DetailedRow[]> {
  const listed = studies.find((study) => study.name === name);
  if (listed === undefined) throw new Error(`There is no study "${name}".`);
  const lacking = await listed.lacks?.();
  if (lacking !== undefined) {
    process.stderr.write(`${name}: skipped: ${lacking}\n`);
    return [];
  }
  const { able, lines } = takingPart(await Promise.all(peers.map(loadPeer)), listed);
  process.stderr.write(lines.map((line) => `${line}\n`).join(""));
  const server = await startModelProcess();
  try {
    const study = await listed.load(able.map(({ contender }) => contender));
    const start = performance.now();
    process.stderr.write(`${name}: ${study.title} ... `);
    const pairs = await study.pairs(quick);
    const compared = self ? againstThemselves(pairs) : pairs;
    const samples = await interleave(sidesOf(compared), { plan: study.plan(quick), server });
    process.stderr.write(`${((performance.now() - start) / 1000).toFixed(1)} s\n`);
    return rowsOf(study, compared, samples);
  } finally {
    await server.stop();
  }
}

process.once("disconnect", () => process.exit(1));
const [name = "", options = "{}"] = process.argv.slice(2);
try {
  const rows = await rowsOfStudy(name, JSON.parse(options) as StudyOptions);
  process.send?.(rows, () => process.exit(0));
} catch (error) {
  process.stderr.write(
    `\nThe bench failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
  process.exit(1);
}
