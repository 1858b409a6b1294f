import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "./run-command.ts";

/**
 * Modules that load where they are used, because they are heavy or belong to a protocol that not every server offers: neither
 * `import "troupe"` nor `import "troupe/server"` brings them in, nor their static imports.
 */
export const lazyModules: readonly string[] = [
  "@a2a-js/sdk",
  "@cfworker/json-schema",
  "@ag-ui/client",
  "@ag-ui/core",
  "@pydantic/genai-prices",
  "@opentelemetry/api",
  "bullmq",
  "gpt-tokenizer",
  "ioredis",
  "minisearch",
  "node:sqlite",
  "openai",
  "undici",
  "yaml",
];

/** What package.json says that the scripts and the architecture test read. */
export interface Manifest {
  readonly name: string;
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

/** The doors of the package that lead to code: `["troupe", "troupe/stores/sqlite", …]`. */
export function publicEntries(manifest: Manifest): string[] {
  return Object.entries(manifest.exports)
    .filter(([, target]) => typeof target !== "string")
    .map(([entry]) => manifest.name + entry.slice(1));
}

/** Every file that the package promises: targets of `exports` under `condition`, `types` or `default` for instance. */
export function entryFiles(manifest: Manifest, condition: string): string[] {
  return Object.values(manifest.exports).flatMap((target) => {
    const file = typeof target === "string" ? undefined : target[condition];
    return file === undefined ? [] : [file.replace(/^\.\//, "")];
  });
}
