import { existsSync, readFileSync } from "node:fs";
import { z } from "zod";
import { renderPath } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";

/** A plugin catalog, `catalog.json`. `troupe schema plugin-catalog` prints it as JSON Schema. */
export const tealCatalogSchema = z.object({
  plugins: z.array(
    z.object({
      plugin_id: z.string(),
      tools: z.array(
        z.object({
          tool_id: z.string().meta({ description: "Name by which the model calls the tool." }),
          governance: z
            .object({
              requires_hitl: z.boolean().optional().meta({ description: "Whether a person has to approve each call." }),
              cost: z.string().optional(),
              data_sensitivity: z.string().optional(),
            })
            .nullish(),
          auth: z.unknown().optional().meta({ description: "Present if the tool needs credentials." }),
        }),
      ),
    }),
  ),
});

/** The rules of one tool, keyed by the name that the model uses. */
export interface Governance {
  readonly needsApproval: boolean;
  /** Whether the entry requires credentials of an authorization server. */
  readonly wantsCredentials: boolean;
  /** Path of the entry, for messages: `catalog.json: plugins[0].tools[1]`. */
  readonly place: string;
}

/**
 * Reads a plugin catalog, `catalog.json`. Tools outside it have no rules.
 * @param file The path. The file is optional unless `isNamed`, which means that an option gave this path.
 * @throws InvalidInputError that names the file and the path of the invalid field.
 */
export function readCatalog(file: string, { isNamed }: { readonly isNamed: boolean }): ReadonlyMap<string, Governance> {
  if (!existsSync(file)) {
    if (isNamed) throw new InvalidInputError(`there is no catalog ${file}`);
    return new Map();
  }
  const parsed = tealCatalogSchema.safeParse(parsedFile(file));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const path = (issue?.path ?? []).map((part) => (typeof part === "number" ? part : String(part)));
    throw new InvalidInputError(`${file}: ${renderPath(path)}: ${issue?.message ?? "does not fit"}`);
  }
  const rules = new Map<string, Governance>();
  for (const [p, { tools }] of parsed.data.plugins.entries()) {
    for (const [t, { tool_id, governance, auth }] of tools.entries()) {
      rules.set(tool_id, {
        needsApproval: governance?.requires_hitl === true || rules.get(tool_id)?.needsApproval === true,
        wantsCredentials: auth !== undefined && auth !== null,
        place: `${file}: plugins[${p}].tools[${t}]`,
      });
    }
  }
  return rules;
}

function parsedFile(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as unknown;
  } catch (error) {
    throw new InvalidInputError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
