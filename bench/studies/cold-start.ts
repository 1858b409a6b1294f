import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { answerText } from "../model-answers.ts";
import type { ModelProcess } from "../model-process.ts";
import type { Sample, Side, Study } from "../study.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));

/** From the start of `node` to the output line after the first turn, or after the import. */
export const coldStart: Study = {
  name: "cold-start",
  title: "from the start of node to the end of the first turn, of the import, of a page of help",
  unit: "ms",
  plan: (quick) => (quick ? { warmUps: 1, rounds: 7 } : { warmUps: 2, rounds: 25 }),
  pairs: async () => {
    const bare = processSide("bare", async ({ baseUrl }) => ["bare.mjs", baseUrl]);
    const bareImport = processSide("import of openai", async () => ["import.mjs", "openai"]);
    const node = processSide("node alone", async () => ["import.mjs"]);
    const oursInMemory = processSide("memory", async ({ baseUrl }, dist) => ["ours.mjs", baseUrl, dist]);
    const oursOnSqlite = processSide("sqlite", async ({ baseUrl }, dist, file) => ["ours.mjs", baseUrl, dist, file]);
    const oursImport = processSide("import of troupe", async (_server, dist) => ["import.mjs", `${dist}/index.js`]);
    const oursHelp = processSide("help", async (_server, dist) => ["command.mjs", `${dist}/cli/main.js`, "--help"]);
    return [
      { stores: "memory", variant: "first turn", ours: oursInMemory, bare },
      { stores: "sqlite", variant: "first turn", ours: oursOnSqlite, bare },
      { stores: "none", variant: "import", ours: oursImport, bare: bareImport },
      { stores: "none", variant: "import, over node", ours: oursImport, bare: node },
      { stores: "none", variant: "help, over node", ours: oursHelp, bare: node },
    ];
  },
};

type Command = (server: ModelProcess, dist: string, file: string) => Promise<readonly [string, ...string[]]>;

function processSide(name: string, command: Command): Side {
  return {
    name,
    prepare: async (server) => {
      const dist = await built();
      const { folder, remove } = temporaryFolder();
      let started = 0;
      return {
        sample: async () => {
          started += 1;
          const [file, ...args] = await command(server, dist.folder, `${folder}/${started}.db`);
          return await takeSample(name, [`${root}bench/cold/${file}`, ...args]);
        },
        close: async () => {
          remove();
          dist.remove();
        },
      };
    },
  };
}

async function takeSample(name: string, args: readonly string[]): Promise<Sample> {
  const start = performance.now();
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const gone = new Promise((resolve) => child.once("close", resolve));
  let line: string | undefined;
  let value = Number.NaN;
  for await (line of createInterface({ input: child.stdout })) value = performance.now() - start;
  await gone;
  if (line === undefined) throw new Error(`cold-start, ${name}: the process ended without a word.`);
  const { text, processor } = JSON.parse(line) as { text: string; processor: NodeJS.CpuUsage };
  if (text !== answerText && text !== "") throw new Error(`cold-start, ${name}: the answer was ${text}.`);
  return { value, processorMs: (processor.user + processor.system) / 1000 };
}

let build: Promise<{ readonly folder: string; readonly remove: () => void }> | undefined;

/** The shipped package, built once into a folder inside the repository, so that its dependencies are found. */
async function built(): Promise<{ readonly folder: string; readonly remove: () => void }> {
  build ??= (async () => {
    mkdirSync(`${root}.troupe`, { recursive: true });
    const folder = mkdtempSync(`${root}.troupe/bench-package-`);
    const remove = (): void => rmSync(folder, { recursive: true, force: true });
    process.once("exit", remove);
    await run(process.execPath, ["scripts/build.ts", "--code", "--to", folder], { cwd: root });
    return { folder: `${folder}/dist`, remove };
  })();
  return await build;
}
