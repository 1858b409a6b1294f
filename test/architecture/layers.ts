/** The layers as design and docs/development.md describe it: folders from the ground up, each row above the one before it. */
export const layers: readonly (readonly string[])[] = [
  ["errors"],
  ["base"],
  ["budget", "redis"],
  ["state"],
  ["model", "tools", "hooks", "context", "stores", "queues"],
  ["agents", "remote"],
  ["machines"],
  ["actors"],
  ["runtime"],
  ["telemetry", "inspector", "server", "client", "demo"],
  ["cli"],
];

/** `testing` stands beside the layers: it may look in up to this layer, and nothing looks at it. */
const testingLayer = layerOf("runtime") + 0.5;

/** Neighbours on one layer that may take types, and only types. */
const typeNeighbours: Readonly<Record<string, readonly string[]>> = {
  hooks: ["model", "tools"],
  context: ["model", "tools"],
};

/** Folders that may take values from these only, and types from every layer below. */
const valueSources: Readonly<Record<string, readonly string[]>> = { machines: ["state", "budget"], client: [] };

/**
 * Subfolders: the folders of a folder, from the ground up, "" being the files that lie in the folder itself. A file takes values from its own
 * subfolder and from the rows below; types it may take from any.
 */
const subfolders: Readonly<Record<string, readonly (readonly string[])[]>> = {
  runtime: [
    ["api"],
    ["agent", "unsaved", "projections"],
    ["follow"],
    ["placement"],
    ["work"],
    ["core"],
    ["handles"],
    [""],
  ],
  stores: [["rules"], ["memory", "sqlite", "redis"], [""]],
  server: [["core"], ["webhooks"], ["api", "teal", "a2a", "ag-ui", "openai"], [""]],
  inspector: [["run-model"], ["replay"], ["feed", "stately", "ui"], ["http"], [""]],
};

/** Where a package may be imported, types included. */
export const packageOwners: readonly {
  readonly name: string;
  readonly place: RegExp;
  readonly words: string;
}[] = [
  { name: "openai", place: /^src\/model\/openai-(client|model)\.ts$/, words: "src/model/openai-{client,model}.ts" },
  { name: "undici", place: /^src\/model\/undici-fetch\.ts$/, words: "src/model/undici-fetch.ts" },
  { name: "bullmq", place: /^src\/queues\/bullmq-[^/]+\.ts$/, words: "src/queues/bullmq-*.ts" },
  { name: "ioredis", place: /^src\/redis\/redis-[^/]+\.ts$/, words: "src/redis/redis-*.ts" },
  { name: "react", place: /^src\/client\/react\.ts$/, words: "src/client/react.ts" },
  { name: "node:sqlite", place: /\/sqlite-[^/]+\.ts$/, words: "sqlite-*.ts" },
];

function layerOf(folder: string): number {
  return layers.findIndex((names) => names.includes(folder));
}

/** Says why code in `from` may not import from `to`, or nothing if it may. Both are folders of src. */
export function forbiddenImport(from: string, to: string, isType: boolean): string | undefined {
  if (to === "testing") return "nothing in src imports testing";
  const upper = from === "testing" ? testingLayer : layerOf(from);
  const lower = layerOf(to);
  if (lower === -1) return `src/${to} is in no layer (test/architecture/layers.ts)`;
  if (upper === -1) return `src/${from} is in no layer (test/architecture/layers.ts)`;
  if (lower > upper) return `${to} stands above ${from}`;
  if (lower === upper) {
    if (typeNeighbours[from]?.includes(to) !== true) return `${from} and ${to} are neighbours on one layer`;
    return isType ? undefined : `${from} may take types of ${to} only (import type)`;
  }
  const sources = valueSources[from];
  if (sources === undefined || isType || sources.includes(to)) return undefined;
  if (sources.length === 0) return `${from} takes types only (import type)`;
  return `${from} takes values from ${sources.join(" and ")}, of ${to} types only (import type)`;
}

/** Says why code in the subfolder `from` of a folder may not import from its subfolder `to`, or nothing if it may. */
export function forbiddenSubfolder(folder: string, from: string, to: string, isType: boolean): string | undefined {
  const rows = subfolders[folder];
  if (rows === undefined || from === to) return undefined;
  const rowOf = (subfolder: string): number => rows.findIndex((names) => names.includes(subfolder));
  for (const subfolder of [from, to])
    if (rowOf(subfolder) === -1)
      return `src/${folder}/${subfolder} is in no layer of its folder (test/architecture/layers.ts)`;
  if (isType || rowOf(to) < rowOf(from)) return undefined;
  return `${folder}/${to} does not stand below ${folder}/${from}, which may take its types only (import type)`;
}
