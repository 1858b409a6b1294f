import type { AgentKey, Entry } from "../../state/index.ts";
import type { Batch } from "./batch.ts";
import type { Tables } from "./tables.ts";

/** Stores a batch's artifacts under the versions they get: per name, from 1. Gives the versions by artifact id. */
export function saveArtifacts(tables: Tables, batch: Batch): ReadonlyMap<string, number> {
  const versions = new Map<string, number>();
  for (const artifact of batch.artifacts) {
    const version = versionOf(tables, batch.key, artifact.artifactId, artifact.name);
    tables.putArtifact(batch.key, { ...artifact, version });
    versions.set(artifact.artifactId, version);
  }
  return versions;
}

/** An artifact that is saved again is no new version of itself. */
function versionOf(tables: Tables, key: AgentKey, artifactId: string, name: string): number {
  const saved = tables.artifactMeta(key, artifactId);
  return saved?.name === name ? saved.version : tables.newestVersion(key, name) + 1;
}

/** The entries that tell of saved artifacts, with their versions. */
export function withVersions(entries: readonly Entry[], versions: ReadonlyMap<string, number>): readonly Entry[] {
  if (versions.size === 0) return entries;
  return entries.map((entry) => {
    const version = entry.type === "artifact.saved" ? versions.get(entry.artifactId) : undefined;
    return version === undefined ? entry : { ...entry, version };
  });
}
