import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CommandResult, runCommand } from "./run-command.ts";

interface Stage {
  readonly name: string;
  readonly commands: readonly (readonly [string, ...string[]])[];
  /** Extracts the most important fact from the output of a passed stage. */
  readonly detail?: (output: string) => string | undefined;
}

/**
 * The duration of a run does not indicate a hang: with other load, tests take many times as long. But they print a line
 * after each test file, and no single file or tool takes this long.
 */
const silentMs = 15 * 60_000;

const temporary = mkdtempSync(join(tmpdir(), "troupe-verify-"));

const stages: readonly Stage[] = [
  { name: "format", commands: [["biome", "format", "."]] },
  { name: "lint", commands: [["oxlint", "--type-aware", "--deny-warnings"]] },
  {
    name: "types",
    commands: [
      ["tsc", "--noEmit"],
      ["tsc", "--noEmit", "-p", "src/inspector/ui"],
      ["tsc", "--noEmit", "-p", "site"],
      ["tsc", "-p", "tsconfig.build.json", "--outDir", temporary],
    ],
  },
  {
    name: "tests",
    commands: [["vitest", "run"]],
    detail: (output) => /^\s*Tests\s+(.+)$/m.exec(output)?.[1],
  },
  {
    name: "docs",
    commands: [["node", "scripts/build-site.ts"]],
    detail: (output) => output.trimEnd().split("\n").at(-1),
  },
  {
    name: "pack",
    commands: [["node", "scripts/pack-check.ts"]],
    detail: (output) => output.trimEnd().split("\n").at(-1),
  },
  {
    name: "package",
    // The previous stage has built the package.
    commands: [["node", "scripts/package-check.ts", "--built"]],
    detail: (output) => output.trimEnd().split("\n").at(-1),
  },
];

async function runStage(stage: Stage): Promise<CommandResult> {
  const outputs: string[] = [];
  let milliseconds = 0;
  for (const [command, ...commandArguments] of stage.commands) {
    const result = await runCommand(command, commandArguments, { silentMs });
    outputs.push(result.output);
    milliseconds += result.milliseconds;
    if (!result.ok) return { ...result, milliseconds };
  }
  return { ok: true, stdout: "", output: outputs.join("\n"), milliseconds };
}

async function main(): Promise<number> {
  const options = process.argv.slice(2);
  const unknown = options.filter((option) => option !== "--skip-tests");
  if (unknown.length > 0) {
    process.stderr.write(`Unknown option ${unknown.join(" ")}. Usage: npm run verify [-- --skip-tests]\n`);
    return 2;
  }
  for (const stage of stages) {
    if (stage.name === "tests" && options.includes("--skip-tests")) {
      process.stdout.write(`${stage.name.padEnd(8)}skipped\n`);
      continue;
    }
    const result = await runStage(stage);
    const seconds = `${(result.milliseconds / 1000).toFixed(1)} s`.padStart(8);
    const detail = result.ok ? (stage.detail?.(result.output) ?? "") : "";
    process.stdout.write(
      `${stage.name.padEnd(8)}${result.ok ? "passed" : "FAILED"}${seconds}  ${detail}`.trimEnd() + "\n",
    );
    if (!result.ok) {
      process.stdout.write(`\n${result.output}`);
      return 1;
    }
  }
  return 0;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
try {
  process.exitCode = await main();
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
