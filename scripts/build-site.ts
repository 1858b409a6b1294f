/**
 * The documentation site: pages of docs/ and around it, the API reference and the examples.
 *
 *     node scripts/build-site.ts            # static files in .troupe/site
 *     node scripts/build-site.ts dev        # serves the pages and follows changes
 *     node scripts/build-site.ts preview    # serves the built files
 *
 * TROUPE_SITE_BASE is the path under which the site will be served (default "/"), TROUPE_SITE_FOLDER the folder of the built files.
 */
import { join } from "node:path";
import { basePath } from "../site/base-path.ts";
import { generatePages } from "../site/generate-pages.ts";
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
  if (command === "build") await build(root);
  else if (command === "preview") await serve({ root, base: basePath() });
  else {
    const server = await createServer(root);
    await server.listen();
    server.printUrls();
  }
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
