// The code of the built package: few files are loaded, later parts load lazily, and the user's packages are shared.
import { readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { packageOf } from "../../scripts/bundle.ts";
import { lazyModules, loadableEntries, readManifest } from "../../scripts/manifest.ts";
import { moduleSpecifiers } from "../../scripts/module-specifiers.ts";
import { startModelServer } from "../support/model-server.ts";
import { type BuiltPackage, buildPackage } from "./built-package.ts";

/** The maximum number of package files that an import, a first turn or a page of help loads. */
const MOST_FILES = 9;

const manifest = readManifest();
let built: BuiltPackage;
beforeAll(async () => {
  built = await buildPackage();
});
afterAll(() => built.remove());

/** Packages that others load lazily, and these entries directly, because they are about them. */
const needed: Readonly<Record<string, readonly string[]>> = {
  "troupe/stores/sqlite": ["node:sqlite"],
  "troupe/telemetry": ["@opentelemetry/api", "yaml"],
};

/** Packages of a turn that calls a model over HTTP. */
const ofTurns: readonly string[] = [
  "@xstate/store",
  "eventsource-parser",
  "openai",
  "porter2",
  "undici",
  "xstate",
  "zod",
];

/** Packages of the command line only. */
const ofCommands: readonly string[] = ["cli-truncate", "commander", "log-update", "minisearch", "string-width"];

/** Records the URL of every module that Node loads, ES modules and CommonJS alike; must be imported first. */
const noting = `
import { registerHooks } from "node:module";
const loaded = new Set();
registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context);
    loaded.add(resolved.url);
    return resolved;
  },
});
`;

interface Loaded {
  /** Files of the package. */
  readonly files: readonly string[];
  /** Packages and modules of Node. */
  readonly packages: ReadonlySet<string>;
}

/** The other modules that a program loads. */
async function loadedBy(program: string): Promise<Loaded> {
  const urls = (await built.evaluate(`${noting}${program}\nconsole.log(JSON.stringify([...loaded]));`)) as string[];
  const files = urls.filter(
    (url) => url.startsWith("file:") && url.includes("/dist/") && !url.includes("/node_modules/"),
  );
  const installed = urls.flatMap((url) => /.*\/node_modules\/(.+)/.exec(url)?.[1] ?? []).map(packageOf);
  return {
    files,
    packages: new Set([...installed, ...urls.filter((url) => url.startsWith("node:"))]),
  };
}

describe.each(loadableEntries(manifest))("%s", (entry) => {
  test(`loads at most ${MOST_FILES} files of the package, and nothing that is used later`, async () => {
    const { files, packages } = await loadedBy(`await import(${JSON.stringify(entry)});`);
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(MOST_FILES);
    expect(lazyModules.filter((name) => packages.has(name))).toEqual(needed[entry] ?? []);
    expect(ofCommands.filter((name) => packages.has(name))).toEqual([]);
  });
});

test("a first turn over HTTP on SQLite loads few files, and no package that it does not need", async () => {
  const server = await startModelServer(() => "Done.");
  try {
    const { files, packages } = await loadedBy(`
      const { createRuntime, defineAgent, openaiModel } = await import("troupe");
      const { sqliteStores } = await import("troupe/stores/sqlite");
      const model = openaiModel("any", { apiKey: "none", baseURL: ${JSON.stringify(server.baseURL)} });
      const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model })], stores: sqliteStores("first.db") });
      const agent = await runtime.agent("clerk");
      await agent.start();
      await agent.executeTurn("Go.").result;
      await runtime.shutdown();
    `);
    expect([...packages].filter((name) => !isBuiltin(name)).toSorted()).toEqual(ofTurns);
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(MOST_FILES);
  } finally {
    await server.stop();
  }
});

test("a page of help loads few files, and of the packages only the parser of command lines", async () => {
  const main = join(built.root, manifest.bin["troupe"] ?? "");
  const { files, packages } = await loadedBy(`
    process.argv.splice(1, 2, ${JSON.stringify(main)}, "--help");
    const { write } = process.stdout;
    process.stdout.write = () => true;
    await import(${JSON.stringify(main)});
    process.stdout.write = write;
  `);
  expect(files.length, files.join("\n")).toBeLessThanOrEqual(MOST_FILES);
  expect([...packages].filter((name) => !isBuiltin(name))).toEqual(["commander"]);
});

test("CommonJS requires every entry, and gets the same classes as an import", async () => {
  const entries = loadableEntries(manifest);
  const { ok, stdout, output } = await built.node([
    "--input-type=commonjs",
    "--eval",
    `
      const entries = ${JSON.stringify(entries)};
      // An entry with a top-level await would throw ERR_REQUIRE_ASYNC_MODULE.
      const names = entries.map((entry) => Object.keys(require(entry)).length);
      import("troupe").then(({ createRuntime }) => {
        console.log(JSON.stringify({ names, isSame: require("troupe").createRuntime === createRuntime }));
      });
    `,
  ]);
  expect(ok, output).toBe(true);
  const { names, isSame } = JSON.parse(stdout) as { readonly names: readonly number[]; readonly isSame: boolean };
  expect(entries.filter((_, index) => names[index] === 0)).toEqual([]);
  expect(isSame).toBe(true);
});

test("an error from one entry is an instance of the class that another one exports", async () => {
  const outcome = await built.evaluate(`
    import { InvalidInputError, ModelError, TroupeError, run, defineAgent, openaiModel } from "troupe";
    import { sqliteStores } from "troupe/stores/sqlite";
    import { serveRuntime } from "troupe/server";
    const caught = (work) => Promise.resolve().then(work).then(() => "nothing", (error) => error);
    const wrongStore = await caught(() => sqliteStores(7));
    const wrongServer = await caught(() => serveRuntime());
    const far = openaiModel("any", { apiKey: "none", baseURL: "http://127.0.0.1:1" });
    const unreachable = await caught(() => far.generate({ messages: [] }, { signal: new AbortController().signal }));
    console.log(JSON.stringify([
      wrongStore instanceof InvalidInputError,
      wrongServer instanceof TroupeError,
      unreachable instanceof ModelError,
    ]));
  `);
  expect(outcome).toEqual([true, true, true]);
});

test("schemas work with the user's zod, and machines with the user's XState", async () => {
  const outcome = await built.evaluate(`
    import { z } from "zod";
    import { createRuntime, defineAgent } from "troupe";
    import { messageSchema } from "troupe/state";
    import { scriptedModel } from "troupe/testing";
    import { isMachineSnapshot } from "xstate";
    const list = z.array(messageSchema).safeParse([{ role: "unknown" }]);
    let isMachine = false;
    const runtime = await createRuntime({
      agents: [defineAgent({ name: "clerk", model: scriptedModel(["Done."]) })],
      onInspect: (_agentId, event) => {
        isMachine ||= event.type === "@xstate.snapshot" && isMachineSnapshot(event.snapshot);
      },
    });
    const agent = await runtime.agent("clerk");
    await agent.start();
    await agent.executeTurn("Go.").result;
    await runtime.shutdown();
    console.log(JSON.stringify([messageSchema instanceof z.ZodType, list.error instanceof z.ZodError, isMachine]));
  `);
  expect(outcome).toEqual([true, true, true]);
});

test("a stack names the called functions", async () => {
  const stack = await built.evaluate(`
    import { defineAgent } from "troupe";
    try {
      defineAgent({ name: "", model: 7 });
    } catch (error) {
      console.log(JSON.stringify(error.stack));
    }
  `);
  expect(stack).toMatch(/ at (?:Module\.)?defineAgent \(file:.*\/dist\/chunks\/runtime\.js:\d+:\d+\)/);
});

test("the code of other packages is not in the package, and each is a dependency", () => {
  const known = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
  const files = readdirSync(join(built.root, "dist"), { recursive: true, encoding: "utf8" });
  const code = files.filter((path) => path.endsWith(".js") && !path.startsWith("assets"));
  expect(code.length).toBeGreaterThan(10);
  for (const path of code) {
    const text = readFileSync(join(built.root, "dist", path), "utf8");
    expect(text, path).not.toMatch(/^\/\/#region .*node_modules/m);
    const foreign = moduleSpecifiers(path, text)
      .map(({ name }) => name)
      .filter((name) => !name.startsWith(".") && !isBuiltin(name) && !known.includes(packageOf(name)));
    expect(foreign, path).toEqual([]);
  }
});

test("only the command line has compiled code", () => {
  const files = readdirSync(join(built.root, "dist"), { recursive: true, encoding: "utf8" });
  const keeping = files
    .filter((path) => path.endsWith(".js"))
    .filter((path) => readFileSync(join(built.root, "dist", path), "utf8").includes("enableCompileCache"));
  expect(keeping).toEqual([join("cli", "main.js")]);
});
