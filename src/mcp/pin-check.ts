import type { Redact } from "../tools/index.ts";
import { changesOf, namesText, shownName, type ToolChange } from "./definition-changes.ts";
import type { ListedTool } from "./listed-tool.ts";
import { pinCommand, type PinnedServer } from "./mcp-lock.ts";
import { pinnedToolsOf } from "./pinned-tool.ts";

/** What a server's definitions are compared with. */
export interface PinSource {
  /** The server's name. */
  readonly server: string;
  /** The lock file, as the user named it. */
  readonly file: string;
  readonly pins: PinnedServer;
  readonly redact: Redact;
}

/** The result of a comparison. */
export interface PinCheck {
  /** Why a call of a tool is refused, by the server's names for the tools; each follows a colon. */
  readonly refusals: ReadonlyMap<string, string>;
  /** Names of tools that are not pinned, and of those that are refused; `undefined` if there are none. */
  readonly warning: string | undefined;
}

/** Lines of a difference in the refusal of a call, which is a result for the model. */
const MOST_REFUSAL_LINES = 12;

/** Compares a server's list of tools with the pinned definitions. */
export function checkPins(source: PinSource, listed: readonly ListedTool[]): PinCheck {
  const { server, file, pins, redact } = source;
  const { tools, unpinnable } = pinnedToolsOf(listed, redact);
  const changes = changesOf(pins.tools, tools);
  const refused = changes.filter(({ kind }) => kind !== "added");
  const added = [...changes.filter(({ kind }) => kind === "added").map(({ name }) => name), ...unpinnable];
  const notes = [
    ...(refused.length === 0 ? [] : [`calls are refused of ${namesText(refused.map(({ name }) => name))}`]),
    ...(added.length === 0 ? [] : [`not pinned and not offered: ${namesText(added)}`]),
  ];
  return {
    refusals: new Map(refused.map((change) => [change.name, refusalOf(source, change)])),
    warning:
      notes.length === 0
        ? undefined
        : `The MCP server "${server}" differs from ${file}: ${notes.join("; ")}. Compare with: ${checkCommand(file, server)}`,
  };
}

function refusalOf({ server, file }: PinSource, { kind, name, parts, lines }: ToolChange): string {
  if (kind === "removed") return `the server does not list ${shownName(name)} any more, which is pinned in ${file}`;
  const shown = lines.slice(0, MOST_REFUSAL_LINES);
  const rest = lines.length > shown.length ? [`… and ${lines.length - shown.length} more lines`] : [];
  return [
    `the ${parts.join(" and the ")} of ${shownName(name)} changed since the tool was pinned in ${file}. A person has to accept the change with: ${pinCommand(file, server)}. The difference:`,
    ...shown,
    ...rest,
  ].join("\n");
}

/** The command that compares a lock file with its servers. */
function checkCommand(file: string, server: string): string {
  return pinCommand(file, server).replace(" pin ", " check ");
}
