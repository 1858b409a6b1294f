/**
 * `npm run pictures`: takes new pictures of the inspector for the README and docs and writes them to docs/pictures. Exit
 * codes: 0, 1 (there is no browser, or a picture failed).
 */
import { spawnSync } from "node:child_process";
import { findBrowser } from "../test/support/browser-program.ts";
import { commandEnvironment, repositoryRoot } from "./run-command.ts";

// If there is no browser, findBrowser() prints what to do.
process.exitCode = (await findBrowser()) ? takePictures() : 1;

function takePictures(): number {
  const { status } = spawnSync("vitest", ["run", "test/browser/pictures.test.ts"], {
    cwd: repositoryRoot,
    env: commandEnvironment({ TROUPE_PICTURES: "1" }),
    stdio: "inherit",
  });
  return status ?? 1;
}
