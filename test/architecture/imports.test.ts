import { readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join, posix, relative, sep } from "node:path";
import { describe, expect, test } from "vitest";
import { packageOf } from "../../scripts/bundle.ts";
import { entryFiles, lazyModules, readManifest } from "../../scripts/manifest.ts";
import { repositoryRoot, sourceCondition } from "../../scripts/run-command.ts";
import { type ImportKind, importsOf } from "./source-imports.ts";
import { fileCycles, type Rules, violations } from "./violations.ts";

function readSources(folder: string, endings = /\.ts$/): ReadonlyMap<string, string> {
  const names = readdirSync(join(repositoryRoot, folder), { recursive: true, withFileTypes: true });
  const paths = names.filter((file) => file.isFile() && endings.test(file.name));
  return new Map(
    paths.map((file) => {
      const path = join(file.parentPath, file.name);
      return [relative(repositoryRoot, path).split(sep).join("/"), readFileSync(path, "utf8")];
    }),
  );
}

function faultsOf(files: Readonly<Record<string, string>>, rules: Rules = {}): readonly string[] {
  return violations(new Map(Object.entries(files)), rules);
}

const empty = "export {};\n";

/** The inspector's page runs in browsers and has its own rules. */
const page = "src/inspector/ui/";

test("the sources follow the layers", () => {
  const sources = new Map([...readSources("src")].filter(([path]) => !path.startsWith(page)));
  expect([...sources.keys()]).toContain("src/errors/index.ts");
  const manifest = readManifest();
  const packages = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies ?? {})];
  expect(violations(sources, { entries: entryFiles(manifest, sourceCondition), packages, lazyModules })).toEqual([]);
});

/** Node enforces the `exports` of a package, but in a package without them every file can be imported. */
test("no source imports a file that its package does not export", () => {
  const deep = [...readSources("src", /\.tsx?$/)].flatMap(([path, source]) => {
    const imports = importsOf(path, source);
    if (typeof imports === "string") return [imports];
    return imports.flatMap(({ specifier, line }) =>
      specifier !== null && isDeep(specifier) ? [`${path}:${line} imports ${specifier}`] : [],
    );
  });
  expect(deep).toEqual([]);
});

function isDeep(specifier: string): boolean {
  const name = packageOf(specifier);
  if (specifier.startsWith(".") || isBuiltin(specifier) || specifier === name) return false;
  const manifest: unknown = JSON.parse(
    readFileSync(join(repositoryRoot, "node_modules", name, "package.json"), "utf8"),
  );
  if (typeof manifest !== "object" || manifest === null || "exports" in manifest) return false;
  // The main file is the package itself, also by its path.
  return !("main" in manifest) || specifier !== `${name}/${String(manifest.main)}`;
}

test("a file inside a package without exports is deep", () => {
  expect(isDeep("undici/lib/dispatcher/pool.js")).toBe(true);
  expect(
    ["undici", "undici/index.js", "gpt-tokenizer/encoding/o200k_base", "node:fs/promises", "../base/index.ts"].filter(
      isDeep,
    ),
  ).toEqual([]);
});

test("the inspector's page imports nothing from Node, and from the runtime only the run model and types of the feed", () => {
  const sources = readSources(page, /\.tsx?$/);
  expect(sources.size).toBeGreaterThan(20);
  const foreign = [...sources].flatMap(([path, source]) => {
    const imports = importsOf(path, source);
    if (typeof imports === "string") return [imports];
    return imports
      .filter(({ specifier, kind }) => !isForPage(path, specifier ?? "", kind))
      .map(({ specifier, line }) => `${path}:${line} imports ${specifier}`);
  });
  expect(foreign).toEqual([]);
  expect(fileCycles(new Map([...sources].map(([path, source]) => [path, withoutAssets(source)])))).toEqual([]);
});

/** Packages that the page may bundle. */
const forPage = [
  "preact",
  "preact/hooks",
  "@preact/signals",
  "@lezer/common",
  "@lezer/markdown",
  "remend",
  "@noble/hashes/sha2.js",
  "@noble/hashes/utils.js",
];

function isForPage(path: string, specifier: string, kind: ImportKind): boolean {
  if (!specifier.startsWith(".")) return forPage.includes(specifier);
  const to = posix.join(posix.dirname(path), specifier);
  if (to.startsWith(page) || to.startsWith("src/inspector/run-model/")) return true;
  return kind === "type" && to === "src/inspector/feed/wire.ts";
}

function withoutAssets(source: string): string {
  return source.replace(/^import .*\.(?:css|json)";$/gm, "");
}

test.each(["bench", "chaos", "scripts", "site", "test"])("there are no import cycles in %s/", (folder) => {
  const files = readSources(folder);
  expect(files.size).toBeGreaterThan(10);
  expect(fileCycles(files)).toEqual([]);
});

describe("the order of the folders", () => {
  test("allows imports from lower layers, through their index", () => {
    const files = {
      "src/errors/index.ts": empty,
      "src/state/index.ts": `import "../errors/index.ts";`,
      "src/runtime/index.ts": `import "../state/index.ts"; import("../errors/index.ts");`,
      "src/testing/index.ts": `import "../runtime/index.ts";`,
      "src/index.ts": `export * from "./runtime/index.ts";`,
    };
    expect(faultsOf(files)).toEqual([]);
  });

  test("forbids imports from higher layers: values, types, lazy imports and re-exports", () => {
    for (const statement of [
      `import { a } from "../runtime/index.ts";`,
      `import type { A } from "../runtime/index.ts";`,
      `import { type A } from "../runtime/index.ts";`,
      `export * from "../runtime/index.ts";`,
      `export type { A } from "../runtime/index.ts";`,
      `await import("../runtime/index.ts");`,
      `type A = import("../runtime/index.ts").A;`,
    ]) {
      const faults = faultsOf({ "src/runtime/index.ts": empty, "src/state/entry.ts": `\n${statement}` });
      expect({ statement, faults }).toEqual({
        statement,
        faults: ["src/state/entry.ts:2: imports src/runtime/index.ts: runtime is above state"],
      });
    }
  });

  test("separates folders on one layer, but lets hooks and context import types from model and tools", () => {
    const files = { "src/tools/index.ts": empty, "src/model/index.ts": empty };
    const typed = `import type { A } from "../tools/index.ts"; import type { B } from "../model/index.ts";`;
    expect(faultsOf({ ...files, "src/hooks/a.ts": typed, "src/context/a.ts": typed })).toEqual([]);
    expect(faultsOf({ ...files, "src/hooks/a.ts": `import { a } from "../tools/index.ts";` })).toEqual([
      "src/hooks/a.ts:1: imports src/tools/index.ts: hooks may only import types from tools (import type)",
    ]);
    expect(faultsOf({ ...files, "src/stores/a.ts": typed })).toHaveLength(2);
    expect(faultsOf({ "src/server/index.ts": empty, "src/inspector/a.ts": `import "../server/index.ts";` })).toEqual([
      "src/inspector/a.ts:1: imports src/server/index.ts: inspector and server are on the same layer",
    ]);
  });

  test("lets machines import values from state and budget only", () => {
    const files = { "src/state/index.ts": empty, "src/budget/index.ts": empty, "src/tools/index.ts": empty };
    const statements = `import "../state/index.ts"; import "../budget/index.ts"; import type { A } from "../tools/index.ts";`;
    expect(faultsOf({ ...files, "src/machines/a.ts": statements })).toEqual([]);
    expect(faultsOf({ ...files, "src/machines/a.ts": `import { a } from "../tools/index.ts";` })).toEqual([
      "src/machines/a.ts:1: imports src/tools/index.ts: machines may only import types from tools (import type); values from state and budget",
    ]);
  });

  test("keeps testing out of src except for commands and the inspector, and testing below the server", () => {
    const files = { "src/testing/index.ts": empty, "src/server/index.ts": empty };
    for (const path of ["src/index.ts", "src/base/clock.ts"]) {
      const specifier = path === "src/index.ts" ? "./testing/index.ts" : "../testing/index.ts";
      expect(faultsOf({ ...files, [path]: `import type { A } from "${specifier}";` })).toEqual([
        `${path}:1: imports src/testing/index.ts: only cli and inspector import testing`,
      ]);
    }
    expect(faultsOf({ ...files, "src/cli/main.ts": `import { a } from "../testing/index.ts";` })).toEqual([]);
    expect(faultsOf({ ...files, "src/testing/a.ts": `import "../server/index.ts";` })).toEqual([
      "src/testing/a.ts:1: imports src/server/index.ts: server is above testing",
    ]);
  });

  test("knows every folder", () => {
    const faults = faultsOf({ "src/base/index.ts": empty, "src/utils/a.ts": `import "../base/index.ts";` });
    expect(faults).toEqual([
      "src/utils/a.ts:1: imports src/base/index.ts: src/utils is in no layer (test/architecture/layers.ts)",
    ]);
  });
});

describe("the subfolders of a folder", () => {
  const files = {
    "src/stores/index.ts": empty,
    "src/stores/rules/commit.ts": empty,
    "src/stores/sqlite/sqlite-tables.ts": `import "../rules/commit.ts";`,
  };

  test("import values from the subfolders below, and types from any", () => {
    expect(faultsOf({ ...files, "src/stores/sqlite.ts": `import "./sqlite/sqlite-tables.ts";` })).toEqual([]);
    const typed = `import type { A } from "../sqlite/sqlite-tables.ts";`;
    expect(faultsOf({ ...files, "src/stores/redis/redis-tables.ts": typed })).toEqual([]);
  });

  test("import no values from the same or a higher row", () => {
    const statement = `import "../sqlite/sqlite-tables.ts";`;
    expect(faultsOf({ ...files, "src/stores/redis/a.ts": statement, "src/stores/rules/a.ts": statement })).toEqual([
      "src/stores/redis/a.ts:1: imports src/stores/sqlite/sqlite-tables.ts: stores/sqlite is not below stores/redis, which may only import its types (import type)",
      "src/stores/rules/a.ts:1: imports src/stores/sqlite/sqlite-tables.ts: stores/sqlite is not below stores/rules, which may only import its types (import type)",
    ]);
  });

  test("are known by name", () => {
    expect(faultsOf({ ...files, "src/stores/utils/a.ts": `import "../rules/commit.ts";` })).toEqual([
      "src/stores/utils/a.ts:1: imports src/stores/rules/commit.ts: src/stores/utils is in no layer of its folder (test/architecture/layers.ts)",
    ]);
  });
});

describe("entry points", () => {
  const files = { "src/state/index.ts": empty, "src/state/react/index.ts": empty, "src/stores/memory.ts": empty };

  test("an import past an index of another folder is a fault, inside one folder it is not", () => {
    expect(faultsOf({ ...files, "src/state/entry.ts": `import "./react/index.ts";` })).toEqual([]);
    expect(faultsOf({ ...files, "src/tools/a.ts": `import type { A } from "../state/react/index.ts";` })).toEqual([
      "src/tools/a.ts:1: imports src/state/react/index.ts past src/state/index.ts",
    ]);
  });

  test("an entry of the package also counts as an index", () => {
    const source = { ...files, "src/runtime/a.ts": `import "../stores/memory.ts";` };
    expect(faultsOf(source)).toEqual(["src/runtime/a.ts:1: imports src/stores/memory.ts past src/stores/index.ts"]);
    expect(faultsOf(source, { entries: ["src/stores/memory.ts"] })).toEqual([]);
  });

  test("no source file imports the package's own entry point", () => {
    const inside = { "src/index.ts": empty, "src/cli/main.ts": `import "../index.ts"; import "troupe";` };
    expect(faultsOf(inside, { packages: ["zod"] })).toEqual([
      "src/cli/main.ts:1: imports src/index.ts; the entry points are for users of the package",
      "src/cli/main.ts:1: imports troupe, which package.json does not declare for users of the package",
    ]);
  });

  test("an import without a target or with a computed path is a fault", () => {
    expect(faultsOf({ "src/base/a.ts": `import "./b.js"; await import(name);` })).toEqual([
      `src/base/a.ts:1: "./b.js" is not a source file; give the relative path with its .ts ending`,
      "src/base/a.ts:1: a computed import cannot be checked; write the name out",
    ]);
  });
});

describe("cycles", () => {
  test("between files are found for every kind of import", () => {
    const files = {
      "src/base/a.ts": `import { b } from "./b.ts";`,
      "src/base/b.ts": `import type { C } from "./c.ts";`,
      "src/base/c.ts": `await import("./a.ts");`,
      "src/base/d.ts": `import "./a.ts";`,
      "src/base/e.ts": `import "./e.ts";`,
    };
    expect(faultsOf(files)).toEqual([
      "file cycle: src/base/a.ts → src/base/b.ts → src/base/c.ts → src/base/a.ts",
      "file cycle: src/base/e.ts → src/base/e.ts",
    ]);
  });

  test("between folders are found if there is no file cycle", () => {
    const files = {
      "src/base/index.ts": empty,
      "src/base/a.ts": `import "../errors/index.ts";`,
      "src/errors/index.ts": empty,
      "src/errors/b.ts": `import "../base/index.ts";`,
    };
    expect(faultsOf(files)).toEqual([
      "src/errors/b.ts:1: imports src/base/index.ts: base is above errors",
      "folder cycle: base → errors → base",
    ]);
  });
});

describe("packages", () => {
  test("are imported in their own files only", () => {
    const files = {
      "src/model/openai-model.ts": `await import("openai"); import type { A } from "openai/resources";`,
      "src/model/other.ts": `import type OpenAI from "openai";`,
      "src/queues/bullmq-queue.ts": `import "bullmq";`,
      "src/queues/local-queue.ts": `import type { Queue } from "bullmq";`,
      "src/redis/redis-link.ts": `import "ioredis";`,
      "src/stores/sqlite/sqlite-journal.ts": `import "node:sqlite";`,
      "src/stores/memory-journal.ts": `process.getBuiltinModule("node:sqlite"); require("ioredis");`,
    };
    expect(faultsOf(files)).toEqual([
      "src/model/other.ts:1: imports openai, which belongs in src/model/openai-{client,model}.ts",
      "src/queues/local-queue.ts:1: imports bullmq, which belongs in src/queues/bullmq-*.ts",
      "src/stores/memory-journal.ts:1: imports ioredis, which belongs in src/redis/redis-*.ts",
      "src/stores/memory-journal.ts:1: imports node:sqlite, which belongs in sqlite-*.ts",
    ]);
  });

  test("that are heavy are not loaded by the entry point directly", () => {
    const files = {
      "src/index.ts": `export * from "./model/index.ts"; export * from "./stores/index.ts";`,
      "src/model/index.ts": `import { type Encoder } from "gpt-tokenizer/encoding"; export * from "./openai-client.ts";`,
      "src/model/openai-client.ts": `import type OpenAI from "openai";`,
      "src/stores/index.ts": `await import("./sqlite-store.ts");`,
      "src/stores/sqlite-store.ts": `import "node:sqlite";`,
      "src/server/index.ts": `export * from "./a2a/sdk.ts"; export * from "./ag-ui/events.ts";`,
      "src/server/a2a/sdk.ts": `import type * as Core from "@a2a-js/sdk"; export const loaded = await import("@a2a-js/sdk");`,
      "src/server/ag-ui/events.ts": `import { EventType } from "@ag-ui/core";`,
    };
    const lazyModules = ["gpt-tokenizer", "openai", "node:sqlite", "@a2a-js/sdk", "@ag-ui/core"];
    expect(faultsOf(files, { lazyModules })).toEqual([
      "src/index.ts loads gpt-tokenizer at once, it must load lazily: src/index.ts → src/model/index.ts → gpt-tokenizer",
      "src/server/index.ts loads @ag-ui/core at once, it must load lazily: src/server/index.ts → src/server/ag-ui/events.ts → @ag-ui/core",
    ]);
  });
});

test("a source that cannot be parsed is reported", () => {
  expect(faultsOf({ "src/base/a.ts": "import { from;" })).toEqual([
    expect.stringMatching(/^src\/base\/a\.ts: cannot be parsed: /),
  ]);
});
