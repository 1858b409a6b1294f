// Tries the page examples/browser/copilotkit.tsx with the real CopilotKit: installs it into .troupe/peers (some 950 packages and 500 MB,
// too many for the dependencies of this repository; it takes the npm registry once), checks the page's types, and runs its test in a
// browser. Not a stage of `npm run verify`.
import { copyFileSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackages } from "../bench/peers/install.ts";
import { repositoryRoot, runCommand } from "./run-command.ts";

/** What the page imports, and the types of React. */
const versions = {
  "@copilotkit/react-core": "1.74.0",
  react: "^19.3.1",
  "react-dom": "^19.3.1",
  zod: "^4.0.0",
  "@types/react": "^19.0.0",
  "@types/react-dom": "^19.0.0",
};

const page = "copilotkit.tsx";

const compilerOptions = {
  target: "es2024",
  lib: ["es2024", "dom", "dom.iterable"],
  module: "esnext",
  moduleResolution: "bundler",
  jsx: "react-jsx",
  strict: true,
  noImplicitOverride: true,
  noUncheckedSideEffectImports: false,
  noEmit: true,
  skipLibCheck: true,
  types: [],
};

/** The folder with the packages of the page and a copy of it; `undefined` if they were not installed. */
export function installedCopilotKit(): string | undefined {
  const folder = join(repositoryRoot, ".troupe", "peers", "copilotkit");
  if (!existsSync(join(folder, "installed.json"))) return undefined;
  copyFileSync(join(repositoryRoot, "examples", "browser", page), join(folder, page));
  return folder;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = await installPackages("copilotkit", versions);
  installedCopilotKit();
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: [page] }));
  const commands = [
    ["tsc", "-p", folder, "--pretty", "false"],
    ["vitest", "run", "--project", "browser", "test/browser/copilotkit.test.ts"],
  ] as const;
  for (const [command, ...args] of commands) {
    const { ok, output } = await runCommand(command, args);
    console.log(`${[command, ...args].join(" ")}\n${output.trim()}`);
    if (!ok) process.exitCode = 1;
  }
}
