import type { Client } from "@modelcontextprotocol/client";
import type { Redact } from "../tools/index.ts";
import { changesOf, namesText } from "./definition-changes.ts";
import type { ListedTool } from "./listed-tool.ts";
import type { ConnectionHooks } from "./mcp-connection.ts";
import { toolListOf } from "./mcp-lists.ts";
import type { McpOptions } from "./mcp-options.ts";
import { type PinnedTool, pinnedToolsOf } from "./pinned-tool.ts";

/**
 * Warns about tools that a server has changed since this process has read them: the process keeps what it has read. Many servers report
 * a change while they start, so that the list is read again and compared before the warning. Invariants:
 * 1. There is at most one warning.
 * 2. At most one list is being read; all changes that are reported meanwhile lead to one further list.
 */
export class ListWatch {
  readonly hooks: Pick<ConnectionHooks, "onListChanged">;
  readonly #options: McpOptions;
  readonly #redact: Redact;
  /** The tools that this process has read. */
  #known: readonly PinnedTool[] | undefined;
  /** A client whose server has reported a change that was not compared yet. */
  #changed: Client | undefined;
  #isReading = false;
  #isWarned = false;

  constructor(options: McpOptions, redact: Redact) {
    this.#options = options;
    this.#redact = redact;
    this.hooks = {
      onListChanged: (list, client) => {
        if (list !== "tools" || this.#isWarned) return;
        this.#changed = client;
        void this.#compare();
      },
    };
  }

  /** Compares from now on with these tools. */
  compareWith(tools: readonly ListedTool[]): void {
    this.#known = pinnedToolsOf(tools, this.#redact).tools;
    void this.#compare();
  }

  async #compare(): Promise<void> {
    const known = this.#known;
    if (known === undefined || this.#isReading) return;
    this.#isReading = true;
    while (this.#changed !== undefined && !this.#isWarned) {
      const client = this.#changed;
      this.#changed = undefined;
      const signal = AbortSignal.timeout(this.#options.connectTimeoutMs ?? 30_000);
      // A lost connection is replaced at the next call.
      const listed = await toolListOf(client, signal).catch(() => undefined);
      if (listed !== undefined) this.#warn(known, pinnedToolsOf(listed, this.#redact).tools);
    }
    this.#isReading = false;
  }

  #warn(known: readonly PinnedTool[], now: readonly PinnedTool[]): void {
    const names = changesOf(known, now).map(({ name }) => name);
    if (names.length === 0) return;
    this.#isWarned = true;
    process.emitWarning(
      `the MCP server "${this.#options.name}" has changed its tools: ${namesText(names)}; this process keeps those that it has read, restart it to read them again`,
      { code: "TROUPE_MCP_TOOLS_CHANGED" },
    );
  }
}
