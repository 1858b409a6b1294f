// Loaded before `troupe ask` in a clone (`npm start`): builds the inspector's page if the command will show it.
import { spawnSync } from "node:child_process";
import { join } from "node:path";

if (process.argv.some((word) => /^--(?:inspect|stately|serve)\b/.test(word))) {
  const script = join(import.meta.dirname, "build-ui.ts");
  const { status } = spawnSync(process.execPath, [script, "--if-older"], { stdio: "inherit" });
  if (status !== 0) process.exit(1);
}
