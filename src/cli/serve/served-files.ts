import { resolve } from "node:path";
import type { AgentDefinition } from "../../agents/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { RuntimeOptions } from "../../runtime/index.ts";
import type { TealAgent } from "../../server/index.ts";
import type { CliContext } from "../cli-context.ts";
import { withMcpTools } from "../mcp/mcp-tools.ts";
import { loadAgentFile } from "../job/agent-file.ts";

export interface FileOptions {
  /** The module with the plugins of a YAML file. */
  readonly plugins?: string | undefined;
  /** The catalog of a YAML file. */
  readonly catalog?: string | undefined;
  /** File with MCP servers, whose tools all agents of the files get. */
  readonly mcp?: string | undefined;
}

/** The agents of all files of a server. */
export interface ServedFiles {
  readonly agents: readonly AgentDefinition[];
  /** The agents of YAML files. */
  readonly teal: readonly TealAgent[];
  /** The combined rules of all files: a person may decide if no file forbids it. */
  readonly mayDecide: RuntimeOptions["mayDecide"];
}

/** Throws `InvalidInputError` that names the file and the problem. */
export async function servedFiles(
  files: readonly string[],
  context: CliContext,
  { plugins, catalog, mcp }: FileOptions,
): Promise<ServedFiles> {
  const { directory } = context;
  const places = {
    ...(plugins === undefined ? {} : { plugins: resolve(directory, plugins) }),
    ...(catalog === undefined ? {} : { catalog: resolve(directory, catalog) }),
  };
  const loaded = [];
  for (const file of files) {
    loaded.push(await withMcpTools(context, await loadAgentFile(file, directory, places), mcp));
  }
  const teal = loaded.flatMap((file) => file.teal ?? []);
  if (teal.length === 0 && Object.keys(places).length > 0) {
    throw new InvalidInputError("--plugins and --catalog require an agent in YAML; give its file");
  }
  const rules = loaded.flatMap(({ mayDecide }) => mayDecide ?? []);
  return {
    agents: [...new Set(loaded.flatMap((file) => file.agents))],
    teal,
    mayDecide:
      rules.length === 0
        ? undefined
        : async (attempt) => {
            for (const mayDecide of rules) if (!(await mayDecide(attempt))) return false;
            return true;
          },
  };
}
