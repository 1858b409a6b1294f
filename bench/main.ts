/**
 * `npm run bench`: ours in memory, on SQLite and on Redis against a bare `openai` loop, and against each other, interleaved. See README.md beside this file.
 * Results go to standard output, progress to standard error. Exit codes: 0, 1 (a contender failed), 2 (usage), 130 (Ctrl-C).
 */
import { parseArgs } from "node:util";
import { type ModelProcess, startModelProcess } from "./model-process.ts";
import { type DetailedRow, jsonLine, rowsOf, table } from "./report.ts";
import { interleave, sidesOf } from "./rounds.ts";
import { type ListedStudy, studies } from "./studies/index.ts";
import { againstThemselves } from "./study.ts";

const help = `Usage: npm run bench -- [options]

  --only NAME,NAME  only these scenarios: ${studies.map(({ name }) => name).join(", ")}
  --quick           smaller samples, fewer rounds: some minutes for all
  --json            end with one line of JSON instead of the table
  --self            what ours is compared with, against itself: what is not 1 is the noise of this machine
  --help            this text
`;

interface Options {
  readonly chosen: readonly ListedStudy[];
  readonly quick: boolean;
  readonly json: boolean;
  readonly self: boolean;
  readonly help: boolean;
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      self: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const names = values.only?.split(",").map((name) => name.trim());
  for (const name of names ?? []) {
    if (!studies.some((study) => study.name === name)) throw new Error(`--only: there is no scenario "${name}".`);
  }
  const chosen = studies.filter((study) => names === undefined || names.includes(study.name));
  return { chosen, quick: values.quick, json: values.json, self: values.self, help: values.help };
}

async function run(options: Options, server: ModelProcess): Promise<readonly DetailedRow[]> {
  const rows: DetailedRow[] = [];
  for (const listed of options.chosen) {
    const lacking = await listed.lacks?.();
    if (lacking !== undefined) {
      process.stderr.write(`${listed.name}: skipped: ${lacking}\n`);
      continue;
    }
    const study = await listed.load();
    const start = performance.now();
    process.stderr.write(`${study.name}: ${study.title} ... `);
    const pairs = await study.pairs(options.quick);
    const compared = options.self ? againstThemselves(pairs) : pairs;
    const samples = await interleave(sidesOf(compared), { plan: study.plan(options.quick), server });
    process.stderr.write(`${((performance.now() - start) / 1000).toFixed(1)} s\n`);
    rows.push(...rowsOf(study, compared, samples));
  }
  return rows;
}

async function main(): Promise<number> {
  let options: Options;
  try {
    options = readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${help}`);
    return 2;
  }
  if (options.help) {
    process.stdout.write(help);
    return 0;
  }
  const server = await startModelProcess();
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    process.once(signal, () => {
      void server.stop();
      process.exit(code);
    });
  }
  try {
    const rows = await run(options, server);
    process.stdout.write(`${options.json ? jsonLine(rows) : table(rows)}\n`);
    return 0;
  } catch (error) {
    process.stderr.write(
      `\nThe bench failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    return 1;
  } finally {
    await server.stop();
  }
}

process.exitCode = await main();
