import type { Contender } from "../contender.ts";
import type { Scenario } from "../scenario.ts";
import { installPackages, loadPackages, type Packages } from "./install.ts";
import versions from "./versions.json" with { type: "json" };

/** Other agent libraries that can take part in the scenarios. */
export const peerNames = ["ai", "openai-agents", "langgraph"] as const satisfies readonly (keyof typeof versions)[];
export type PeerName = (typeof peerNames)[number];

export interface Peer {
  readonly name: string;
  /** Version of the library. */
  readonly version: string;
  readonly contender: Contender;
  /** Returns why the peer cannot run a scenario; `undefined` if it can. Default: it can run all. */
  readonly lacks?: (scenario: Scenario) => string | undefined;
}

/** A file of this folder: the modules that it imports from its packages, and a factory for its contender. */
interface PeerFile {
  readonly modules: readonly string[];
  readonly contenderOf: (packages: Packages) => Contender;
}

const files: Record<PeerName, () => Promise<PeerFile>> = {
  ai: () => import("./ai.ts"),
  "openai-agents": () => import("./openai-agents.ts"),
  langgraph: () => import("./langgraph.ts"),
};

/** The peers of a list like `ai,langgraph`, without duplicates. Throws for unknown and empty names. */
export function peersNamed(list: string): readonly PeerName[] {
  const names = list.split(",").map((name) => name.trim());
  const known = names.map((name) => {
    const peer = peerNames.find((candidate) => candidate === name);
    if (peer === undefined) throw new Error(`--with: there is no peer "${name}". There are: ${peerNames.join(", ")}.`);
    return peer;
  });
  return [...new Set(known)];
}

/** Installs missing packages and loads the peer. If the installation fails, the error has the command. */
export async function loadPeer(name: PeerName): Promise<Peer> {
  const wanted: Readonly<Record<string, string>> = versions[name];
  const [version = ""] = Object.values(wanted);
  const { modules, contenderOf } = await files[name]();
  const packages = await loadPackages(await installPackages(name, wanted), modules);
  return { name, version, contender: contenderOf(packages) };
}

/** The peers that take part in a study, and one line for each that does not. */
export function takingPart(
  peers: readonly Peer[],
  { name, scenario }: { readonly name: string; readonly scenario?: Scenario },
): { readonly able: readonly Peer[]; readonly lines: readonly string[] } {
  if (scenario === undefined) {
    const names = peers.map((peer) => peer.name).join(", ");
    const lines = peers.length === 0 ? [] : [`${name}: without ${names}: peers take part in the scenarios only`];
    return { able: [], lines };
  }
  const lacking = peers.map((peer) => ({ peer, lack: peer.lacks?.(scenario) }));
  return {
    able: lacking.filter(({ lack }) => lack === undefined).map(({ peer }) => peer),
    lines: lacking.flatMap(({ peer, lack }) => (lack === undefined ? [] : [`${name}: without ${peer.name}: ${lack}`])),
  };
}
