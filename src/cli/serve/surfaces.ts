import type { AgentDefinition } from "../../agents/index.ts";
import { nearestName } from "../../base/index.ts";
import { InvalidInputError, UnsupportedError } from "../../errors/index.ts";
import type { RedisSharing, Surface, TealServed } from "../../server/index.ts";

/** What the surfaces of a server are made of. */
export interface SurfaceContext {
  readonly agents: readonly AgentDefinition[];
  /** The same agents, each under a version. */
  readonly teal: readonly TealServed[];
  /** What several servers share; `undefined` if this is the only one. */
  readonly sharing: RedisSharing | undefined;
  /** Headers in which front ends name their chats. */
  readonly chatIdHeaders: readonly string[];
}

/** A protocol that `serve` speaks. */
export interface ServedSurface {
  /** The word for `--surfaces`. */
  readonly name: string;
  /** How the protocol is called when its addresses are printed. */
  readonly title: string;
  /** Its addresses on the server at `url`, each with a word on what is there. */
  addresses(url: string, place: Pick<SurfaceContext, "teal">): readonly string[];
  /**
   * Imports what the surface takes, and returns how it is made; called only if it is served, before anything is opened.
   * Rejects with `UnsupportedError` that names the install line where an optional package is absent.
   */
  load(): Promise<(place: SurfaceContext) => Surface | Promise<Surface>>;
}

/** All of them, in the order in which they are printed. */
const knownSurfaces: readonly ServedSurface[] = [
  {
    name: "api",
    title: "API",
    addresses: (url) => [`${url}/api (pages: ${url}/api/docs, document: ${url}/api/openapi.json)`],
    load: async () => {
      const { apiSurface } = await import("../../server/index.ts");
      return ({ sharing }) => apiSurface({ tickets: sharing?.tickets });
    },
  },
  {
    name: "teal",
    title: "Teal Agents",
    addresses: (url, { teal }) => teal.map(({ definition, version }) => `${url}/${definition.name}/${version}`),
    load: async () => {
      const { tealSurface } = await import("../../server/index.ts");
      return ({ teal }) => tealSurface({ agents: teal });
    },
  },
  {
    name: "a2a",
    title: "A2A",
    addresses: (url, { teal }) => teal.map(({ definition }) => `${url}/a2a/${definition.name}/`),
    load: async () => {
      const { a2aSurface } = await import("../../server/index.ts");
      // Made once for nothing, since only this says whether its package is there.
      await a2aSurface();
      return ({ teal }) => a2aSurface({ agents: teal });
    },
  },
  {
    name: "ag-ui",
    title: "AG-UI",
    addresses: (url, { teal }) =>
      teal.map(({ definition }) => `${url}/ag-ui/${definition.name} (for clients of AG-UI 1.0)`),
    load: async () => {
      const { agUiSurface } = await import("../../server/index.ts");
      return ({ agents }) => agUiSurface({ agents: agents.map(({ name }) => name) });
    },
  },
  {
    name: "openai",
    title: "OpenAI",
    addresses: (url, { teal }) => [`${url}/v1 (models: ${teal.map(({ definition }) => definition.name).join(", ")})`],
    load: async () => {
      const { openaiSurface } = await import("../../server/index.ts");
      return ({ agents, chatIdHeaders }) => openaiSurface({ agents: agents.map(({ name }) => name), chatIdHeaders });
    },
  },
];

/** The surfaces of a server, loaded but not made. */
export interface LoadedSurfaces {
  readonly served: readonly ServedSurface[];
  /** A line for each one that lacks its package. */
  readonly leftOut: readonly string[];
  make(place: SurfaceContext): Promise<readonly Surface[]>;
}

/**
 * Loads the surfaces that a comma-separated list names, else all whose packages are there. Rejects with
 * `InvalidInputError` for a name that is unknown, and for a named surface that lacks its package.
 */
export async function loadSurfaces(
  list: string | undefined,
  known: readonly ServedSurface[] = knownSurfaces,
): Promise<LoadedSurfaces> {
  const wanted = list === undefined ? known : surfacesNamed(list, known);
  const loaded: { surface: ServedSurface; make: Awaited<ReturnType<ServedSurface["load"]>> }[] = [];
  const leftOut: string[] = [];
  for (const surface of wanted) {
    try {
      loaded.push({ surface, make: await surface.load() });
    } catch (error) {
      if (!(error instanceof UnsupportedError)) throw error;
      if (list !== undefined) throw new InvalidInputError(`--surfaces ${surface.name}: ${error.message}`);
      leftOut.push(`${surface.title}: left out; ${error.message}`);
    }
  }
  return {
    served: loaded.map(({ surface }) => surface),
    leftOut,
    make: async (place) => await Promise.all(loaded.map(async ({ make }) => await make(place))),
  };
}

function surfacesNamed(list: string, known: readonly ServedSurface[]): readonly ServedSurface[] {
  const names = known.map(({ name }) => name);
  const wanted = new Set(list.split(",").flatMap((part) => part.trim() || []));
  for (const name of wanted) {
    if (names.includes(name)) continue;
    const meant = nearestName(name, names);
    const hint = meant === undefined ? ";" : `: did you mean ${meant}?`;
    throw new InvalidInputError(
      `--surfaces: there is no surface "${name.slice(0, 64)}"${hint} the surfaces are ${names.join(", ")}`,
    );
  }
  if (wanted.size === 0) throw new InvalidInputError(`--surfaces takes one or more of ${names.join(", ")}`);
  return known.filter(({ name }) => wanted.has(name));
}
