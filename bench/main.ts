/**
 * `npm run bench`: compares troupe in memory, on SQLite and on Redis with a bare `openai` loop, with other libraries and
 * with each other, in interleaved rounds. See README.md in this folder.
 * Results go to standard output, progress to standard error. Exit codes: 0, 1 (a contender failed), 2 (usage), 130 (Ctrl-C).
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { help, type Options, readOptions } from "./options.ts";
import { loadPeer, type Peer } from "./peers/index.ts";
import { type DetailedRow, jsonLine, runHead, table } from "./report.ts";
import type { StudyOptions } from "./study-process.ts";

const program = fileURLToPath(new URL("study-process.ts", import.meta.url));
let running: ChildProcess | undefined;

/** Runs the studies sequentially, each in its own process. `undefined` if one failed; its output has the reason. */
async function run({ chosen, quick, self, peers }: Options): Promise<readonly DetailedRow[] | undefined> {
  const options: StudyOptions = { quick, self, peers };
  const rows: DetailedRow[] = [];
  for (const { name } of chosen) {
    const child = fork(program, [name, JSON.stringify(options)], { serialization: "advanced" });
    running = child;
    child.on("message", (found) => rows.push(...(found as readonly DetailedRow[])));
    const [code] = (await once(child, "exit")) as [number | null];
    if (code !== 0) return undefined;
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
  const peers: Peer[] = [];
  try {
    for (const name of options.peers) peers.push(await loadPeer(name));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    process.once(signal, () => {
      running?.kill("SIGTERM");
      process.exit(code);
    });
  }
  const rows = await run(options);
  if (rows === undefined) return 1;
  process.stdout.write(`${options.json ? jsonLine(rows, runHead(options.quick, peers)) : table(rows)}\n`);
  return 0;
}

process.exitCode = await main();
