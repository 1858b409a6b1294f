/**
 * `npm run bench`: ours in memory, on SQLite and on Redis against a bare `openai` loop, other libraries, and each other, interleaved. See README.md beside this file.
 * Results go to standard output, progress to standard error. Exit codes: 0, 1 (a contender failed), 2 (usage), 130 (Ctrl-C).
 */
import { type ModelProcess, startModelProcess } from "./model-process.ts";
import { help, type Options, readOptions } from "./options.ts";
import { loadPeer, type Peer, takingPart } from "./peers/index.ts";
import { type DetailedRow, jsonLine, rowsOf, runHead, table } from "./report.ts";
import { interleave, sidesOf } from "./rounds.ts";
import { againstThemselves } from "./study.ts";

async function run(
  options: Options,
  { server, peers }: { readonly server: ModelProcess; readonly peers: readonly Peer[] },
): Promise<readonly DetailedRow[]> {
  const rows: DetailedRow[] = [];
  for (const listed of options.chosen) {
    const lacking = await listed.lacks?.();
    if (lacking !== undefined) {
      process.stderr.write(`${listed.name}: skipped: ${lacking}\n`);
      continue;
    }
    const { able, lines } = takingPart(peers, listed);
    process.stderr.write(lines.map((line) => `${line}\n`).join(""));
    const study = await listed.load(able.map(({ contender }) => contender));
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
  const peers: Peer[] = [];
  try {
    for (const name of options.peers) peers.push(await loadPeer(name));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
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
    const rows = await run(options, { server, peers });
    process.stdout.write(`${options.json ? jsonLine(rows, runHead(options.quick, peers)) : table(rows)}\n`);
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
