/**
 * `npm run bench`: ours in memory and on SQLite against a bare `openai` loop, interleaved. See README.md beside this file.
 * Results go to standard output, progress to standard error. Exit codes: 0, 1 (a contender failed), 2 (usage), 130 (Ctrl-C).
 */
import { parseArgs } from "node:util";
import { bare } from "./bare/index.ts";
import type { Contender } from "./contender.ts";
import { type ModelProcess, startModelProcess } from "./model-process.ts";
import { type DetailedRow, jsonLine, rowsOf, table } from "./report.ts";
import { measure, type Plan } from "./rounds.ts";
import { type Scenario, scenarios } from "./scenario.ts";

const help = `Usage: npm run bench -- [options]

  --only NAME,NAME  only these scenarios: ${scenarios.map((scenario) => scenario.name).join(", ")}
  --quick           smaller samples, fewer rounds: under a minute for all
  --json            end with one line of JSON instead of the table
  --self            the bare loop against itself: what is not 1 is the noise of this machine
  --help            this text
`;

interface Options {
  readonly chosen: readonly Scenario[];
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
    if (!scenarios.some((scenario) => scenario.name === name))
      throw new Error(`--only: there is no scenario "${name}".`);
  }
  const chosen = scenarios.filter((scenario) => names === undefined || names.includes(scenario.name));
  return { chosen, quick: values.quick, json: values.json, self: values.self, help: values.help };
}

function planOf(scenario: Scenario, quick: boolean): Plan {
  const conversations = scenario.conversations[quick ? "quick" : "full"];
  return quick ? { warmUps: 2, rounds: 7, conversations } : { warmUps: 4, rounds: 21, conversations };
}

/** Ours is loaded only when it takes part: `--self` needs no runtime. */
async function opponentsOf(self: boolean): Promise<readonly Contender[]> {
  if (self) return [{ name: "none", prepare: (scenario, baseUrl) => bare.prepare(scenario, baseUrl) }];
  const { oursInMemory, oursOnSqlite } = await import("./ours/index.ts");
  return [oursInMemory, oursOnSqlite];
}

async function run(options: Options, server: ModelProcess): Promise<readonly DetailedRow[]> {
  const opponents = await opponentsOf(options.self);
  const rows: DetailedRow[] = [];
  for (const scenario of options.chosen) {
    const start = performance.now();
    process.stderr.write(`${scenario.name}: ${scenario.title} ... `);
    const plan = planOf(scenario, options.quick);
    const samples = await measure(scenario, [bare, ...opponents], { plan, server });
    process.stderr.write(`${((performance.now() - start) / 1000).toFixed(1)} s\n`);
    rows.push(
      ...rowsOf(
        scenario,
        opponents.map((opponent) => opponent.name),
        samples,
      ),
    );
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
