import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../scripts/run-command.ts";
import type { StoredTree, Stores } from "../../src/stores/index.ts";

const { version } = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8")) as { version: string };

/** The fixtures of all versions, one folder each. */
export const fixturesFolder = join(repositoryRoot, "test", "fixtures");
/** The folder of this version. */
export const fixtureFolder = join(fixturesFolder, version);

/** Every tree of the stores. */
export async function exportedTrees(stores: Stores): Promise<StoredTree[]> {
  const roots = await stores.listAgents({ tenant: "default", rootsOnly: true });
  const trees: StoredTree[] = [];
  for (const { tenant, agentId } of roots) {
    const tree = await stores.exportTree(tenant, agentId);
    if (tree) trees.push(tree);
  }
  return trees;
}
