import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "./run-command.ts";

/**
 * Modules that are loaded on first use, because they are heavy or belong to a protocol that not every server offers.
 * Neither `import "troupe"` nor `import "troupe/server"` loads them or their static imports.
 */
export const lazyModules: readonly string[] = [
  "@a2a-js/sdk",
  "@cfworker/json-schema",
  "@ag-ui/client",
  "@ag-ui/core",
  "@modelcontextprotocol/client",
  "@modelcontextprotocol/ext-tasks",
  "@modelcontextprotocol/server",
  "@pydantic/genai-prices",
  "@opentelemetry/api",
  "bullmq",
  "croner",
  "gpt-tokenizer",
  "ioredis",
  "minisearch",
  "node:sqlite",
  "openai",
  "pg",
  "picomatch",
  "undici",
  "yaml",
];

/** The fields of package.json that the scripts and the architecture test read. */
export interface Manifest {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

export function readManifest(): Manifest {
  return JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8")) as Manifest;
}

/** The package's entries with code: `["troupe", "troupe/stores/sqlite", …]`. */
export function publicEntries(manifest: Manifest): string[] {
  return Object.entries(manifest.exports)
    .filter(([, target]) => typeof target !== "string")
    .map(([entry]) => manifest.name + entry.slice(1));
}

/** The entries that plain Node can load: the matchers extend a run of vitest and import it. */
export function loadableEntries(manifest: Manifest): string[] {
  return publicEntries(manifest).filter((entry) => !entry.endsWith("/matchers"));
}

/** Every file that package.json names: the targets of `exports` under `condition`, such as `types` or `default`. */
export function entryFiles(manifest: Manifest, condition: string): string[] {
  return Object.values(manifest.exports).flatMap((target) => {
    const file = typeof target === "string" ? undefined : target[condition];
    return file === undefined ? [] : [file.replace(/^\.\//, "")];
  });
}
