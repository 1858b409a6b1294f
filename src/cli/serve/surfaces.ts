import type { AgentDefinition } from "../../agents/index.ts";
import { nearestName } from "../../base/index.ts";
import { InvalidInputError, UnsupportedError } from "../../errors/index.ts";
import type { RedisSharing, Surface, TealServed } from "../../server/index.ts";

/** What surfaces are created from. */
export interface SurfaceContext {
  readonly agents: readonly AgentDefinition[];
  /** The same agents with versions. */
  readonly teal: readonly TealServed[];
  /** Shared state of several servers; `undefined` for a single server. */
  readonly sharing: RedisSharing | undefined;
  /** Headers with the front end's chat id. */
  readonly chatIdHeaders: readonly string[];
  /** The key that signs the states of open requests over MCP. */
  readonly mcpStateKey: () => Promise<string>;
}

/** A protocol of `serve`. */
export interface ServedSurface {
  /** Its name in `--surfaces`. */
  readonly name: string;
  /** Title of the protocol for printed addresses. */
  readonly title: string;
  /** Its addresses on the server at `url`, each with a short description. */
  addresses(url: string, place: Pick<SurfaceContext, "teal">): readonly string[];
  /**
   * Imports the surface's packages and returns its factory; called only if the surface is served, before anything is
   * opened. Rejects with `UnsupportedError` that contains the install command if an optional package is missing.
   */
  load(): Promise<(place: SurfaceContext) => Surface | Promise<Surface>>;
}

/** All surfaces, in the order in which they are printed. */
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
      // Created only to check that its package is installed.
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
    name: "ai-sdk",
    title: "AI SDK",
    addresses: (url, { teal }) => teal.map(({ definition }) => `${url}/ai-sdk/${definition.name} (for useChat)`),
    load: async () => {
      const { aiSdkSurface } = await import("../../server/index.ts");
      return ({ agents }) => aiSdkSurface({ agents: agents.map(({ name }) => name) });
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
  {
    name: "mcp",
    title: "MCP",
    addresses: (url, { teal }) => [
      `${url}/mcp (tools: ${teal.map(({ definition }) => definition.name).join(", ")}; Streamable HTTP)`,
    ],
    load: async () => {
      const { mcpSurface } = await import("../../server/mcp-server.ts");
      // Created only to check that its package is installed.
      await mcpSurface();
      return async ({ teal, mcpStateKey }) => {
        const agents = teal.map(({ definition, description }) => ({ definition, description }));
        return await mcpSurface({ agents, stateKey: await mcpStateKey() });
      };
    },
  },
];

/** Loaded surfaces that are not created yet. */
export interface LoadedSurfaces {
  readonly served: readonly ServedSurface[];
  /** A line for each surface whose package is missing. */
  readonly leftOut: readonly string[];
  make(place: SurfaceContext): Promise<readonly Surface[]>;
}

/**
 * Loads the surfaces of a comma-separated list, or by default all whose packages are installed. Rejects with
 * `InvalidInputError` for an unknown name, and for a named surface whose package is missing.
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
      `--surfaces: there is no surface "${name.slice(0, 64)}"${hint} available surfaces are ${names.join(", ")}`,
    );
  }
  if (wanted.size === 0) throw new InvalidInputError(`--surfaces must contain one or more of ${names.join(", ")}`);
  return known.filter(({ name }) => wanted.has(name));
}
