// Builds and packs the package and uses it as a new user would: in an empty project, on plain Node, without our tools.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { publicNames } from "../test/architecture/public-names.ts";
import {
  arktypeSchema,
  commonJsProgram,
  optionalPackagesProgram,
  readmeProgram,
  toolProgram,
  valibotSchema,
  zodSchema,
} from "./consumer-programs.ts";
import { entryFiles, lazyModules, loadableEntries, type Manifest, publicEntries, readManifest } from "./manifest.ts";
import { contentFaults, installedBytes } from "./package-contents.ts";
import { type CommandOptions, type CommandResult, repositoryRoot, runCommand } from "./run-command.ts";

/** Most processor time of the best of three imports; with other load, an import costs a few times as much. */
const importLimitMs = 1_500;

const manifest = readManifest();
const project = mkdtempSync(join(tmpdir(), "troupe-pack-"));
const installedPackages = join(project, "node_modules");
const installed = join(installedPackages, manifest.name);

class PackFault extends Error {}

async function run(
  purpose: string,
  command: string,
  commandArguments: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const result = await runCommand(command, commandArguments, { timeoutMs: 300_000, ...options });
  if (!result.ok) throw new PackFault(`${purpose}:\n${result.output}`);
  return result;
}

function checkBuiltFiles(): void {
  const promised = [
    ...entryFiles(manifest, "types"),
    ...entryFiles(manifest, "default"),
    ...Object.values(manifest.bin),
    "README.md",
    "LICENSE",
  ];
  const missing = promised.filter((path) => !existsSync(join(repositoryRoot, path)));
  if (missing.length > 0) {
    throw new PackFault(
      `package.json names files that the build did not write:\n${missing.map((path) => `  ${path}`).join("\n")}\n` +
        "Add the source (dist/x.js is built from src/x.ts) or remove the file from package.json.",
    );
  }
  for (const path of Object.values(manifest.bin)) {
    if (readFileSync(join(repositoryRoot, path), "utf8").startsWith("#!/usr/bin/env node\n")) continue;
    throw new PackFault(`${path} is a bin: its source must begin with the line "#!/usr/bin/env node".`);
  }
}

async function pack(): Promise<string> {
  await run("npm pack failed", "npm", ["pack", "--ignore-scripts", "--pack-destination", project]);
  const name = readdirSync(project).find((file) => file.endsWith(".tgz"));
  if (name === undefined) throw new PackFault("npm pack left no .tgz file.");
  return join(project, name);
}

async function install(tarball: string): Promise<void> {
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  const flags = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"];
  await run("npm install of the packed file failed", "npm", ["install", ...flags, tarball], { directory: project });
  const faults = contentFaults(installed, manifest);
  if (faults.length > 0) throw new PackFault(`The package check failed:\n  ${faults.join("\n  ")}`);
}

/** Records every module that Node loads while the package is imported, both ES modules and CommonJS. */
async function checkImportIsLight(): Promise<string> {
  writeFileSync(
    join(project, "light.js"),
    `import { registerHooks } from "node:module";
const loaded = new Set();
registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context);
    loaded.add(resolved.url);
    return resolved;
  },
});
const started = process.cpuUsage();
await import(${JSON.stringify(manifest.name)});
const used = process.cpuUsage(started);
const milliseconds = (used.user + used.system) / 1_000;
const modules = loaded.size;
await import(${JSON.stringify(`${manifest.name}/server`)});
process.stdout.write(JSON.stringify({ milliseconds, modules, loaded: [...loaded] }));
`,
  );
  let fastest = Number.POSITIVE_INFINITY;
  let moduleCount = 0;
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const purpose = `import "${manifest.name}" failed on plain Node`;
    const { stdout } = await run(purpose, "node", ["light.js"], { directory: project });
    const measured = JSON.parse(stdout) as {
      readonly milliseconds: number;
      readonly modules: number;
      readonly loaded: readonly string[];
    };
    const heavy = lazyModules.filter((name) => measured.loaded.some((url) => holds(url, name)));
    if (heavy.length > 0) {
      throw new PackFault(
        `import "${manifest.name}" and "${manifest.name}/server" load ${heavy.join(", ")}: import them lazily, where they are used.`,
      );
    }
    fastest = Math.min(fastest, measured.milliseconds);
    moduleCount = measured.modules;
  }
  if (fastest > importLimitMs) {
    throw new PackFault(
      `import "${manifest.name}" took ${fastest.toFixed(0)} ms of the processor, more than ${importLimitMs} ms.`,
    );
  }
  return `import ${fastest.toFixed(0)} ms of the processor, ${moduleCount} modules`;
}

/** Whether a loaded module belongs to a package. */
function holds(url: string, name: string): boolean {
  return url === name || url.includes(`/node_modules/${name}/`);
}

async function checkEntriesLoad(): Promise<void> {
  for (const entry of loadableEntries(manifest)) {
    const program = `if (Object.keys(await import(${JSON.stringify(entry)})).length === 0) throw new Error("exports nothing");`;
    await run(`import "${entry}" failed on plain Node`, "node", ["--input-type=module", "--eval", program], {
      directory: project,
    });
  }
}

/** Compiles a consumer of every public name against the installed declarations. An entry without types would be `any`. */
async function checkTypes(): Promise<void> {
  const entries = loadableEntries(manifest);
  const consumer = [
    ...entries.map((entry, index) => `import * as entry${index} from ${JSON.stringify(entry)};`),
    ...entries.map((entry, index) => {
      const names = (publicNames[entry] ?? []).map((name) => `${name} as ${name}Of${index}`);
      return `export type { ${names.join(", ")} } from ${JSON.stringify(entry)};`;
    }),
    "type Typed<Module> = 0 extends 1 & Module ? never : Module;",
    ...entries.map(
      (_, index) => `export const names${index}: string[] = Object.keys(entry${index} as Typed<typeof entry${index}>);`,
    ),
  ];
  writeFileSync(join(project, "consumer.ts"), `${consumer.join("\n")}\n`);
  await Promise.all([checkTypesWith("nodenext", "nodenext"), checkTypesWith("esnext", "bundler")]);
}

async function checkTypesWith(module: string, moduleResolution: string): Promise<void> {
  const compilerOptions = {
    target: "es2024",
    module,
    moduleResolution,
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    types: ["node"],
    typeRoots: [join(repositoryRoot, "node_modules", "@types")],
  };
  const file = join(project, `tsconfig.${moduleResolution}.json`);
  writeFileSync(file, JSON.stringify({ compilerOptions, files: ["consumer.ts", "tool.ts"] }));
  const { output } = await runCommand("tsc", ["-p", file, "--pretty", "false"], { directory: project });
  // Declarations of other packages are not checked; ours are checked as strictly as the consumer's own files.
  const ours = output
    .split("\n")
    .filter((line) => /^(?:consumer|tool)\.ts|^error /.test(line) || line.includes(`node_modules/${manifest.name}/`));
  if (ours.length === 0) return;
  throw new PackFault(`The package's types do not compile in a consumer (${moduleResolution}):\n${ours.join("\n")}`);
}

/** Compiles a CommonJS project in TypeScript with each setting that makes `require()` of ES modules legal, and runs it. */
async function checkCommonJs(): Promise<void> {
  writeFileSync(join(project, "common.cts"), commonJsProgram);
  const settings = [
    ["commonjs", "bundler"],
    ["node20", "node16"],
    ["nodenext", "nodenext"],
  ] as const;
  await Promise.all(
    settings.map(async ([module, moduleResolution]) => {
      const file = join(project, `tsconfig.${module}-cjs.json`);
      const outDir = `of-${module}`;
      const compilerOptions = {
        target: "es2023",
        lib: ["es2024"],
        module,
        moduleResolution,
        outDir,
        strict: true,
        skipLibCheck: true,
        types: ["node"],
        typeRoots: [join(repositoryRoot, "node_modules", "@types")],
      };
      writeFileSync(file, JSON.stringify({ compilerOptions, files: ["common.cts"] }));
      const directory = { directory: project };
      await run(`A CommonJS project does not compile with module ${module}`, "tsc", ["-p", file], directory);
      await run(`A CommonJS project compiled with module ${module}`, "node", [join(outDir, "common.cjs")], directory);
    }),
  );
}

function evaluate(purpose: string, program: string): Promise<CommandResult> {
  return run(purpose, "node", ["--input-type=module", "--eval", program], { directory: project });
}

/** Runs the first program in the README. */
async function checkPrograms(): Promise<void> {
  const { stdout } = await evaluate("The README's program failed on plain Node", readmeProgram());
  if (!stdout.includes("Invoice A-7 is paid.")) {
    throw new PackFault(`Wrong output of the README's program; expected "Invoice A-7 is paid.":\n${stdout}`);
  }
  const missing = await evaluate("Without the optional packages", optionalPackagesProgram);
  if (
    !/npm install ioredis\b[^]*npm install pg\b[^]*npm install bullmq ioredis\b[^]*npm install @a2a-js\/sdk\b[^]*npm install @modelcontextprotocol\/client\b[^]*npm install @modelcontextprotocol\/server\b/.test(
      missing.stdout,
    )
  ) {
    throw new PackFault(`The errors for missing optional packages do not say how to install them:\n${missing.output}`);
  }
}

/** Users install their own schema library: test the newest zod here, the oldest that package.json allows, and other libraries. */
async function checkWithEachSchemaLibrary(): Promise<void> {
  for (const name of ["arktype", "valibot", "@valibot/to-json-schema"]) provide(name);
  for (const [name, schema] of [
    ["zod", zodSchema],
    ["zod-4.2", zodSchema],
    ["zod-lowest", zodSchema],
    ["zod", arktypeSchema],
    ["zod", valibotSchema],
  ] as const) {
    provide("zod", name);
    writeFileSync(join(project, "tool.ts"), toolProgram(schema));
    await checkTypes();
    await run(`A tool failed with ${name}: ${schema.imports}`, "node", ["tool.ts"], { directory: project });
  }
}

/** Installs a package of this repository into the project. */
function provide(name: string, ours = name): void {
  rmSync(join(installedPackages, name), { recursive: true, force: true });
  mkdirSync(dirname(join(installedPackages, name)), { recursive: true });
  symlinkSync(join(repositoryRoot, "node_modules", ours), join(installedPackages, name), "junction");
}

async function checkBins(): Promise<void> {
  for (const name of Object.keys(manifest.bin)) {
    const commandArguments = ["--no-install", name, "--help"];
    const result = await run(`npx ${name} --help failed`, "npx", commandArguments, { directory: project });
    if (!result.stdout.includes(name))
      throw new PackFault(`npx ${name} --help does not speak of ${name}:\n${result.output}`);
  }
}

/**
 * Installs `create-troupe` beside the package, writes each template with it, and checks the project's types against the
 * installed declarations, with the tsconfig.json of the project. Next.js is not installed: the template imports none of it.
 */
async function checkTemplates(): Promise<void> {
  const creator = join(repositoryRoot, "packages", "create-troupe");
  const { version, dependencies } = JSON.parse(readFileSync(join(creator, "package.json"), "utf8")) as Manifest;
  if (version !== manifest.version || dependencies[manifest.name] !== version) {
    throw new PackFault(`packages/create-troupe must have the version ${manifest.version} and depend on exactly it.`);
  }
  await run("npm pack of create-troupe failed", "npm", ["pack", creator, "--pack-destination", project]);
  const flags = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save"];
  const packed = [`create-troupe-${version}.tgz`, `${manifest.name}-${manifest.version}.tgz`];
  await run("npm install of create-troupe failed", "npm", ["install", ...flags, ...packed], { directory: project });
  for (const name of ["vitest", "@types/node", "@types/react", "hono", "@hono/node-server", "zod"]) provide(name);
  for (const name of readdirSync(join(installed, "templates")).filter((folder) => folder !== "shared")) {
    const words = ["--no-install", "create-troupe", `new-${name}`, "--template", name];
    await run(`npm create troupe failed for the template ${name}`, "npx", words, { directory: project });
    await run(`The types of the template ${name}`, "tsc", ["--noEmit"], { directory: join(project, `new-${name}`) });
  }
}

try {
  await run("npm run build failed", "node", ["scripts/build.ts"]);
  checkBuiltFiles();
  await install(await pack());
  const sizes = [installed, installedPackages].map((folder) => `${(installedBytes(folder) / 2 ** 20).toFixed(1)} MiB`);
  const light = await checkImportIsLight();
  provide("react");
  await checkEntriesLoad();
  await checkPrograms();
  await checkCommonJs();
  await checkBins();
  provide("bullmq");
  provide("ioredis");
  await checkWithEachSchemaLibrary();
  await checkTemplates();
  process.stdout.write(`${sizes[0]}, ${sizes[1]} installed, ${publicEntries(manifest).length} entries, ${light}\n`);
} catch (error) {
  if (!(error instanceof PackFault)) throw error;
  process.stderr.write(`${error.message.trimEnd()}\n`);
  process.exitCode = 1;
} finally {
  rmSync(project, { recursive: true, force: true });
}
