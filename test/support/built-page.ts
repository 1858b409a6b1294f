import { runCommand } from "../../scripts/run-command.ts";

/** Builds the inspector's page before the tests if its sources are newer. */
export async function setup(): Promise<void> {
  const { ok, output } = await runCommand("node", ["scripts/build-ui.ts", "--if-older"]);
  if (!ok) throw new Error(`the inspector's page cannot be built:\n${output}`);
}
