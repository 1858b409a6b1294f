import type { RunContext } from "../tools/index.ts";
import { type FolderEntry, tooLarge } from "./jailed-folder.ts";
import type { WorkspaceFiles } from "./workspace-files.ts";
import { namesOfPath, refusedPath } from "./workspace-path.ts";

const prefix = "workspace/";

/**
 * Files that are kept as artifacts of the agent, one version for each write: they survive restarts in the agent's stores, are deleted with
 * the agent, and belong to this agent alone. Nothing is written to the disk of the process.
 */
export function artifactFiles(): WorkspaceFiles {
  return {
    name: "artifactFiles",
    isInternal: true,
    list: async (path, run) => listed(path, await sizesOf(run)),
    async read(path, { maxBytes }, run) {
      const name = namesOfPath(path).join("/");
      const artifact = name === "" ? undefined : await run.artifact(`${prefix}${name}`);
      if (!artifact) throw refusedPath(path, await missing(name, run));
      if (artifact.size > maxBytes) throw tooLarge(path, artifact.size, maxBytes);
      return Buffer.from(artifact.content, artifact.encoding ?? "utf8");
    },
    async write(path, content, run) {
      const name = namesOfPath(path).join("/");
      if (name === "") throw refusedPath(path, "it is a folder");
      const sizes = await sizesOf(run);
      const above = [...sizes.keys()].find((one) => name.startsWith(`${one}/`));
      if (above !== undefined) throw refusedPath(path, `${above} is a file, not a folder`);
      if ([...sizes.keys()].some((one) => one.startsWith(`${name}/`))) throw refusedPath(path, "it is a folder");
      await run.saveArtifact({ name: `${prefix}${name}`, contentType: typeOf(content), content });
    },
  };
}

async function missing(name: string, run: RunContext): Promise<string> {
  const names = [...(await sizesOf(run)).keys()];
  return names.some((one) => name === "" || one.startsWith(`${name}/`))
    ? "it is a folder"
    : "there is no such file or folder";
}

/** Text is stored as text, everything else as base64. */
function typeOf(content: Uint8Array): string {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(content);
    return content.includes(0) ? "application/octet-stream" : "text/plain; charset=utf-8";
  } catch {
    return "application/octet-stream";
  }
}

/** The sizes of all files, by path. */
async function sizesOf(run: RunContext): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for (const { name, size } of await run.artifacts()) {
    if (name.startsWith(prefix)) sizes.set(name.slice(prefix.length), size);
  }
  return sizes;
}

function listed(path: string, sizes: ReadonlyMap<string, number>): readonly FolderEntry[] {
  const names = namesOfPath(path);
  const start = names.map((name) => `${name}/`).join("");
  const entries = new Map<string, FolderEntry>();
  for (const [file, size] of sizes) {
    if (!file.startsWith(start)) continue;
    const [name = "", ...below] = file.slice(start.length).split("/");
    entries.set(name, below.length > 0 ? { name, kind: "folder", size: 0 } : { name, kind: "file", size });
  }
  if (entries.size === 0 && names.length > 0) {
    throw refusedPath(
      path,
      sizes.has(names.join("/")) ? "it is a file, not a folder" : "there is no such file or folder",
    );
  }
  return [...entries.values()].sort((one, other) => (one.name < other.name ? -1 : Number(one.name > other.name)));
}
