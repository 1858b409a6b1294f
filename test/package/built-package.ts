import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type CommandResult, repositoryRoot, runCommand } from "../../scripts/run-command.ts";

/** The code of the package as it is published, in a folder from which the packages of this repository are found. */
export interface BuiltPackage {
  readonly root: string;
  /** Runs Node in the folder of the package, so that `troupe` resolves to it. */
  node(words: readonly string[], environment?: Readonly<Record<string, string>>): Promise<CommandResult>;
  /** Runs a module there, and returns its output parsed as JSON. Throws when it fails. */
  evaluate(program: string): Promise<unknown>;
  remove(): void;
}

export async function buildPackage(): Promise<BuiltPackage> {
  const place = join(repositoryRoot, ".troupe");
  mkdirSync(place, { recursive: true });
  const root = mkdtempSync(join(place, "package-"));
  const node = (words: readonly string[], environment = {}): Promise<CommandResult> =>
    runCommand("node", words, { directory: root, environment: { NODE_OPTIONS: "", ...environment } });
  const built = await runCommand("node", ["scripts/build.ts", "--code", "--to", root]);
  if (!built.ok) throw new Error(`The package cannot be built:\n${built.output}`);
  return {
    root,
    node,
    evaluate: async (program) => {
      const { ok, stdout, output } = await node(["--input-type=module", "--eval", program]);
      if (!ok) throw new Error(output);
      return JSON.parse(stdout) as unknown;
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}
