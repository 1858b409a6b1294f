import type { Client } from "@modelcontextprotocol/client";
import { abortable } from "../base/index.ts";
import { ToolNotStartedError } from "../errors/index.ts";
import type { Redact } from "../tools/index.ts";
import type { ListedTool } from "./listed-tool.ts";
import type { ConnectionHooks, McpCall, OpenConnection } from "./mcp-connection.ts";
import { McpAuthorizationError } from "./mcp-authorization-error.ts";
import { wordsOf } from "./mcp-errors.ts";
import { toolListOf } from "./mcp-lists.ts";
import { lockFileName, readPins } from "./mcp-lock.ts";
import type { McpOptions } from "./mcp-options.ts";
import { checkPins, type PinCheck, type PinSource } from "./pin-check.ts";

interface ConnectionCheck {
  /** The number of changes that servers had reported when it began. */
  readonly changes: number;
  readonly done: Promise<PinCheck>;
}

/**
 * The pinned definitions of one server. Owns: the comparisons with what the server lists. Invariants:
 * 1. No call is sent over a connection whose definitions were not compared since it was connected, and since the last change that the
 *    server reported.
 * 2. A call of a tool whose definition is another than the pinned one is refused before it is sent.
 * 3. The tools themselves never change.
 */
export class McpPins {
  readonly tools: readonly ListedTool[];
  /** Whether the server was found to use the older protocol. */
  readonly isLegacy: boolean;
  readonly hooks: Pick<ConnectionHooks, "verify" | "onListChanged">;
  readonly #source: PinSource;
  readonly #timeoutMs: number;
  readonly #checks = new WeakMap<Client, ConnectionCheck>();
  #changes = 0;
  readonly #warned = new Set<string>();

  /** Throws `InvalidInputError` if the lock file cannot be used or does not have the server. */
  constructor({ name, pin = "", connectTimeoutMs = 30_000 }: McpOptions, redact: Redact) {
    const pins = readPins(pin, name);
    this.tools = pins.tools;
    this.isLegacy = pins.era === "legacy";
    this.#source = { server: name, file: lockFileName(pin), pins, redact };
    this.#timeoutMs = connectTimeoutMs;
    this.hooks = {
      verify: async (connection, call) => await this.#verify(connection, call),
      onListChanged: (list) => {
        if (list === "tools") this.#changes += 1;
      },
    };
  }

  async #verify({ client }: OpenConnection, { tool, signal }: Pick<McpCall, "tool" | "signal">): Promise<void> {
    const { refusals } = await this.#checkOf(client, signal);
    const refusal = refusals.get(tool.name);
    if (refusal !== undefined) throw new ToolNotStartedError(refusal);
  }

  async #checkOf(client: Client, signal: AbortSignal): Promise<PinCheck> {
    const known = this.#checks.get(client);
    const check = known?.changes === this.#changes ? known : this.#begin(client);
    try {
      return await abortable(check.done, signal);
    } catch (error) {
      if (this.#checks.get(client) === check && !signal.aborted) this.#checks.delete(client);
      if (error instanceof McpAuthorizationError) throw error;
      throw new ToolNotStartedError(`its definitions cannot be compared with ${this.#source.file}: ${wordsOf(error)}`);
    }
  }

  /** All calls of a connection wait for one comparison, which does not end with the call that began it. */
  #begin(client: Client): ConnectionCheck {
    const listed = toolListOf(client, AbortSignal.timeout(this.#timeoutMs));
    const check: ConnectionCheck = { changes: this.#changes, done: listed.then((tools) => this.#compared(tools)) };
    // A caller that is aborted first does not wait for it.
    check.done.catch(() => undefined);
    this.#checks.set(client, check);
    return check;
  }

  #compared(listed: readonly ListedTool[]): PinCheck {
    const check = checkPins(this.#source, listed);
    if (check.warning !== undefined && !this.#warned.has(check.warning)) {
      this.#warned.add(check.warning);
      process.emitWarning(check.warning, { code: "TROUPE_MCP_PIN" });
    }
    return check;
  }
}
