import { areShared } from "../../stores/index.ts";
import type { CallSide } from "./agent-calls.ts";
import type { McpToolsOptions } from "./tools-options.ts";
import { type ProtocolServerSettings, ToolSchemas } from "./protocol-server.ts";
import type { McpServerSdk } from "./sdk.ts";
import { agentTools, type AgentTool, type McpServed } from "./served-agents.ts";
import { HOW_TO_MAKE_A_KEY, stateKeyOf } from "./state-key.ts";

const DEFAULT_WAIT_MS = 45_000;
const DEFAULT_STATE_SECONDS = 86_400;

/** The tools of a server, for each of its runtimes. */
export class ServedTools {
  readonly sdk: McpServerSdk;
  readonly #options: McpToolsOptions;
  readonly #schemas: ToolSchemas;
  readonly #stateKey: ProtocolServerSettings["stateKey"];
  readonly #given: readonly AgentTool[] | undefined;
  readonly #ofRuntime = new WeakMap<object, readonly AgentTool[]>();
  #hasWarned = false;

  constructor(sdk: McpServerSdk, options: McpToolsOptions) {
    this.sdk = sdk;
    this.#options = options;
    this.#schemas = new ToolSchemas(sdk);
    this.#stateKey = {
      key: stateKeyOf(options.stateKey),
      ttlSeconds: options.stateSeconds ?? DEFAULT_STATE_SECONDS,
    };
    // The rule of the option has replaced definitions by objects with a definition.
    this.#given = options.agents && agentTools(options.agents as readonly McpServed[]);
  }

  /** The tools of a runtime: only agents that it has. */
  settings(runtime: CallSide["caller"]["runtime"]): ProtocolServerSettings {
    if (this.#options.stateKey === undefined && areShared(runtime.stores)) this.#warnOfKey();
    const { name = "troupe", version = "1.0.0", waitMs = DEFAULT_WAIT_MS } = this.#options;
    return {
      sdk: this.sdk,
      tools: this.#toolsOf(runtime),
      waitMs,
      stateKey: this.#stateKey,
      schemas: this.#schemas,
      name: { name, version },
    };
  }

  #warnOfKey(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(
      `several processes may serve these agents over MCP, and each has its own key: a person's answer is refused by another process. Give all of them the same stateKey, for instance from ${HOW_TO_MAKE_A_KEY}`,
      { code: "TROUPE_MCP_STATE_KEY" },
    );
  }

  #toolsOf(runtime: CallSide["caller"]["runtime"]): readonly AgentTool[] {
    const known = this.#ofRuntime.get(runtime);
    if (known !== undefined) return known;
    const { definitions } = runtime;
    const tools =
      this.#given?.filter(({ definition }) => definitions.has(definition.name)) ??
      agentTools([...definitions.values()].map((definition) => ({ definition })));
    this.#ofRuntime.set(runtime, tools);
    return tools;
  }
}
