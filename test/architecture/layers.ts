/** The layers that docs/development.md describes: folders from the lowest up, each row above the one before it. */
export const layers: readonly (readonly string[])[] = [
  ["errors"],
  ["base"],
  ["budget", "redis", "postgres", "net"],
  ["state"],
  ["model", "tools", "hooks", "context", "stores", "queues"],
  ["agents", "remote", "mcp", "kit"],
  ["machines"],
  ["actors"],
  ["runtime"],
  ["telemetry", "inspector", "server", "client", "demo"],
  ["cli"],
];

/** `testing` is outside of the layers: it may import from layers up to this one, and only commands and the inspector import it. */
const testingLayer = layerOf("runtime") + 0.5;

/** Folders on one layer that may import each other's types, and only types. */
const typeNeighbours: Readonly<Record<string, readonly string[]>> = {
  hooks: ["model", "tools"],
  context: ["model", "tools"],
};

/** Folders that may import values only from these, and types from every layer below. */
const valueSources: Readonly<Record<string, readonly string[]>> = { machines: ["state", "budget"], client: [] };

/**
 * Subfolders of a folder, from the lowest up; "" stands for the files in the folder itself. A file imports values from its own
 * subfolder and from the rows below, and types from any.
 */
const subfolders: Readonly<Record<string, readonly (readonly string[])[]>> = {
  runtime: [
    ["api"],
    ["deletion"],
    ["agent", "unsaved", "projections"],
    ["follow"],
    ["placement"],
    ["work"],
    ["core"],
    ["handles"],
    ["forks", "schedules"],
    [""],
  ],
  stores: [["rules"], ["memory", "sqlite", "redis", "postgres"], [""]],
  server: [["core"], ["webhooks"], ["api", "teal", "a2a", "ag-ui", "ai-sdk", "openai", "mcp"], [""]],
  inspector: [["run-model"], ["replay"], ["feed", "stately", "ui"], ["http"], [""]],
};

/** The files that may import a package, including its types. */
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
  {
    name: "pg",
    place: /^src\/(postgres\/postgres-(connection|query)|stores\/postgres\/postgres-subscriber)\.ts$/,
    words: "src/postgres/postgres-{connection,query}.ts, src/stores/postgres/postgres-subscriber.ts",
  },
  { name: "node:sqlite", place: /\/sqlite-[^/]+\.ts$/, words: "sqlite-*.ts" },
];

function layerOf(folder: string): number {
  return layers.findIndex((names) => names.includes(folder));
}

/** The reason why code in `from` may not import from `to`; `undefined` if it may. Both are folders of src. */
export function forbiddenImport(from: string, to: string, isType: boolean): string | undefined {
  if (to === "testing")
    return from === "cli" || from === "inspector" ? undefined : "only cli and inspector import testing";
  const upper = from === "testing" ? testingLayer : layerOf(from);
  const lower = layerOf(to);
  if (lower === -1) return `src/${to} is in no layer (test/architecture/layers.ts)`;
  if (upper === -1) return `src/${from} is in no layer (test/architecture/layers.ts)`;
  if (lower > upper) return `${to} is above ${from}`;
  if (lower === upper) {
    if (typeNeighbours[from]?.includes(to) !== true) return `${from} and ${to} are on the same layer`;
    return isType ? undefined : `${from} may only import types from ${to} (import type)`;
  }
  const sources = valueSources[from];
  if (sources === undefined || isType || sources.includes(to)) return undefined;
  if (sources.length === 0) return `${from} may only import types (import type)`;
  return `${from} may only import types from ${to} (import type); values from ${sources.join(" and ")}`;
}

/** The reason why code in the subfolder `from` of a folder may not import from its subfolder `to`; `undefined` if it may. */
export function forbiddenSubfolder(folder: string, from: string, to: string, isType: boolean): string | undefined {
  const rows = subfolders[folder];
  if (rows === undefined || from === to) return undefined;
  const rowOf = (subfolder: string): number => rows.findIndex((names) => names.includes(subfolder));
  for (const subfolder of [from, to])
    if (rowOf(subfolder) === -1)
      return `src/${folder}/${subfolder} is in no layer of its folder (test/architecture/layers.ts)`;
  if (isType || rowOf(to) < rowOf(from)) return undefined;
  return `${folder}/${to} is not below ${folder}/${from}, which may only import its types (import type)`;
}
