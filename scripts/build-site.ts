/**
 * The documentation site: pages of docs/ and around it, the API reference and the examples.
 *
 *     node scripts/build-site.ts            # static files in .troupe/site
 *     node scripts/build-site.ts dev        # serves the pages and follows changes
 *     node scripts/build-site.ts preview    # serves the built files
 *
 * TROUPE_SITE_BASE is the path under which the site will be served (default "/"), TROUPE_SITE_FOLDER the folder of the built files.
 */
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { documents, exampleFiles } from "../site/addresses.ts";
import { basePath } from "../site/base-path.ts";
import { generatePages } from "../site/generate-pages.ts";
import { fullText } from "./agent-docs.ts";
import { repositoryRoot } from "./run-command.ts";

const root = join(repositoryRoot, "site");
const [command = "build", ...others] = process.argv.slice(2);

async function main(): Promise<void> {
  if (!["build", "dev", "preview"].includes(command) || others.length > 0) {
    throw new Error(`Unknown command ${[command, ...others].join(" ")}; expected build, dev or preview.`);
  }
  basePath();
  // A test runner may have set another mode.
  if (command === "build") process.env["NODE_ENV"] = "production";
  if (command !== "preview") await generatePages();
  const { build, createServer, serve } = await import("vitepress");
  if (command === "build") {
    await build(root);
    writeAgentFiles(process.env["TROUPE_SITE_FOLDER"] ?? join(repositoryRoot, ".troupe", "site"));
  } else if (command === "preview") await serve({ root, base: basePath() });
  else {
    const server = await createServer(root);
    await server.listen();
    server.printUrls();
  }
}

/** `llms.txt` links to the sources of pages and programs by their paths in the repository. HTML would be served as a page of the site. */
function writeAgentFiles(folder: string): void {
  const sources = exampleFiles().filter((path) => !path.endsWith(".html"));
  for (const path of ["llms.txt", ...documents(), ...sources]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    copyFileSync(join(repositoryRoot, path), join(folder, path));
  }
  writeFileSync(join(folder, "llms-full.txt"), fullText());
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
