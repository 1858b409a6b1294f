// Prints the closing line of a test run, "N passed, N failed", from the output file of vitest's json reporter.
import { existsSync, readFileSync } from "node:fs";

interface TestResults {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  /** Also `false` if a file could not be loaded, which does not count as a failed test. */
  readonly success: boolean;
}

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error("Usage: node scripts/test-summary.ts <results.json>");
if (existsSync(path)) {
  const results = JSON.parse(readFileSync(path, "utf8")) as TestResults;
  const failed = results.success ? 0 : Math.max(results.numFailedTests, 1);
  process.stdout.write(`${results.numPassedTests} passed, ${failed} failed\n`);
} else {
  process.stderr.write(`The tests left no results in ${path}: they did not finish.\n`);
  process.exitCode = 1;
}
