/**
 * `node bench/picture.ts FILE`: draws the figures in the last line of a file written by `npm run bench -- --json`: the bars
 * of the scenarios to docs/pictures/bench.svg, the studies of growth to bench/pictures/, with their figures as JSON in the
 * same folder. Pictures without new figures are left unchanged. Exit codes: 0, 1 (no such figures).
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../scripts/run-command.ts";
import { filesOf } from "./drawing/files.ts";
import type { RunFigures } from "./report.ts";

function main([file]: readonly string[]): number {
  if (file === undefined) {
    process.stderr.write("Usage: node bench/picture.ts FILE, with what `npm run bench -- --json` has printed in it\n");
    return 1;
  }
  const line = readFileSync(file, "utf8").trimEnd().split("\n").at(-1) ?? "";
  const files = line.startsWith("{") ? filesOf(JSON.parse(line) as RunFigures) : new Map<string, string>();
  if (files.size === 0) {
    process.stderr.write(
      `${file}: its last line has no figures of scenarios or of growth. Was it written with --json?\n`,
    );
    return 1;
  }
  mkdirSync(join(repositoryRoot, "bench", "pictures"), { recursive: true });
  for (const [path, text] of files) {
    writeFileSync(join(repositoryRoot, path), text);
    process.stdout.write(`${path}\n`);
  }
  return 0;
}

process.exitCode = main(process.argv.slice(2));
