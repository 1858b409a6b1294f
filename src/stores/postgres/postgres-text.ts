import { rootOf } from "../../state/index.ts";
import { wellFormed } from "../rules/stored-values.ts";

/**
 * An id as stored in a column. Postgres refuses NUL in texts, so NUL and the character after it are replaced: different ids stay
 * different, and their order stays the same.
 */
export function columnText(id: string, what: string): string {
  const text = wellFormed(id, what);
  if (!text.includes("\u0000") && !text.includes("\u0001")) return text;
  return text.replaceAll("\u0001", "\u0001\u0002").replaceAll("\u0000", "\u0001\u0001");
}

/** The id in a column. */
export function textOfColumn(stored: string): string {
  // The first part has no escape; the character after each escape shows its meaning.
  const [start = "", ...others] = stored.split("\u0001");
  if (others.length === 0) return stored;
  let text = start;
  for (let at = 0; at < others.length; at += 1) {
    const part = others[at] ?? "";
    if (part.startsWith("\u0002")) text += `\u0001${part.slice(1)}`;
    else {
      // Two escapes in a row stand for NUL, with an empty part between them.
      at += 1;
      text += `\u0000${others[at] ?? ""}`;
    }
  }
  return text;
}

/** Names a tree, or other rows that are stored like one: they are written in one transaction, under one version. */
export interface TreeName {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** Both, as one text without spaces and slashes besides the one between them; other rows have a space in it. */
  readonly tag: string;
  /** What other rows these are; `undefined` for a tree. */
  readonly beside?: string;
}

/** The tree of an agent: its id contains the id of its root. */
export function treeOf(tenant: string, agentId: string): TreeName {
  const rootAgentId = rootOf(wellFormed(agentId, "agent id"));
  const tag = `${encodeURIComponent(wellFormed(tenant, "tenant"))}/${encodeURIComponent(rootAgentId)}`;
  return { tenant, rootAgentId, tag };
}

/** The registered processes. */
export const processesTree: TreeName = rowsBeside("processes", "");

/** Rows of a tenant that belong to no tree. */
export function rowsBeside(beside: string, tenant: string): TreeName {
  return { tenant, rootAgentId: "", tag: `${beside} ${encodeURIComponent(wellFormed(tenant, "tenant"))}`, beside };
}

/** The rows of a tenant above the roots of its trees. */
export function aboveTrees(tenant: string): TreeName {
  return rowsBeside("above", tenant);
}

/** The lines that stay of a tenant's deleted trees. */
export function deletionsOf(tenant: string): TreeName {
  return rowsBeside("deletions", tenant);
}

/** Whether a text is the tag of a tree. */
export function isTag(text: string): boolean {
  if (!/^[^/\s]*\/[^/\s]*$/.test(text)) return false;
  try {
    const { tenant, rootAgentId } = namesIn(text);
    return treeOf(tenant, rootAgentId).tag === text;
  } catch {
    return false;
  }
}

/** The ids in a tag. */
export function namesIn(tag: string): Pick<TreeName, "tenant" | "rootAgentId"> {
  const [tenant = "", rootAgentId = ""] = tag.split("/").map(decodeURIComponent);
  return { tenant, rootAgentId };
}

/** The columns `tenant` and `root` of a tree. No tenant is stored as a text that stands for other rows. */
export function columnsOf({ tenant, rootAgentId, beside }: TreeName): readonly [string, string] {
  if (beside !== undefined) return [`\u0001${beside}`, columnText(tenant, "tenant")];
  return [columnText(tenant, "tenant"), columnText(rootAgentId, "root agent id")];
}
