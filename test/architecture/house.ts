/** The house as design and docs/development.md describe it: folders from the ground up, each row above the one before it. */
export const floors: readonly (readonly string[])[] = [
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

/** `testing` stands beside the house: it may look in up to this floor, and nothing looks at it. */
const testingFloor = floorOf("runtime") + 0.5;

/** Neighbours on one floor that may take types, and only types. */
const typeNeighbours: Readonly<Record<string, readonly string[]>> = {
  hooks: ["model", "tools"],
  context: ["model", "tools"],
};

/** Folders that may take values from these only, and types from every floor below. */
const valueSources: Readonly<Record<string, readonly string[]>> = { machines: ["state", "budget"], client: [] };

/**
 * Wings: the folders of a room, from the ground up, "" being the files that lie in the room itself. A file takes values from its own
 * wing and from the rows below; types it may take from any.
 */
const wings: Readonly<Record<string, readonly (readonly string[])[]>> = {
  runtime: [
    ["doors"],
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
export const packagePlaces: readonly {
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

function floorOf(folder: string): number {
  return floors.findIndex((names) => names.includes(folder));
}

/** Says why code in `from` may not import from `to`, or nothing if it may. Both are folders of src. */
export function forbiddenImport(from: string, to: string, isType: boolean): string | undefined {
  if (to === "testing") return "nothing in src imports testing";
  const upper = from === "testing" ? testingFloor : floorOf(from);
  const lower = floorOf(to);
  if (lower === -1) return `src/${to} is no room of the house`;
  if (upper === -1) return `src/${from} is no room of the house`;
  if (lower > upper) return `${to} stands above ${from}`;
  if (lower === upper) {
    if (typeNeighbours[from]?.includes(to) !== true) return `${from} and ${to} are neighbours on one floor`;
    return isType ? undefined : `${from} may take types of ${to} only (import type)`;
  }
  const sources = valueSources[from];
  if (sources === undefined || isType || sources.includes(to)) return undefined;
  if (sources.length === 0) return `${from} takes types only (import type)`;
  return `${from} takes values from ${sources.join(" and ")}, of ${to} types only (import type)`;
}

/** Says why code in the wing `from` of a room may not import from its wing `to`, or nothing if it may. */
export function forbiddenWing(room: string, from: string, to: string, isType: boolean): string | undefined {
  const rows = wings[room];
  if (rows === undefined || from === to) return undefined;
  const rowOf = (wing: string): number => rows.findIndex((names) => names.includes(wing));
  for (const wing of [from, to]) if (rowOf(wing) === -1) return `src/${room}/${wing} is no wing of its room`;
  if (isType || rowOf(to) < rowOf(from)) return undefined;
  return `${room}/${to} does not stand below ${room}/${from}, which may take its types only (import type)`;
}
