import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { type CommandResult, repositoryRoot, runCommand, sourceCondition } from "../../scripts/run-command.ts";

/** The time limit in milliseconds for an example or a block of a document on a busy machine. */
export const programTimeoutMs = 45_000;

/** Runs a command as a reader would, in `directory`, on Node 24, with `import "troupe"` resolved to src/ and without a network. */
export function runOffline(
  command: string,
  commandArguments: readonly string[],
  directory: string,
): Promise<CommandResult> {
  const guard = pathToFileURL(join(repositoryRoot, "test", "support", "offline.ts")).href;
  return runCommand(command, commandArguments, {
    directory,
    timeoutMs: programTimeoutMs,
    environment: {
      NODE_OPTIONS: `--conditions=${sourceCondition} --import=${guard}`,
      OPENAI_API_KEY: "",
      OPENAI_BASE_URL: "",
    },
  });
}
