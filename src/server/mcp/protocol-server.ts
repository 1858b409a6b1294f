import type {
  CallToolResult,
  InputRequiredResult,
  McpServer,
  ServerContext,
  StandardSchemaWithJSON,
} from "@modelcontextprotocol/server";
import { AgentCalls, type CallSettings, type CallSide, type ToolCall } from "./agent-calls.ts";
import type { McpServerSdk } from "./sdk.ts";
import { type AgentTool, isReadOnly, TURN_ABORT, TURN_RESULT } from "./served-agents.ts";
import {
  type AgentArguments,
  agentInputSchema,
  outputSchemaOfTool,
  turnInputSchema,
  turnOutputSchema,
} from "./tool-schemas.ts";
import { stateCodec } from "./turn-state.ts";

/** Rounds of questions in one call of a client of the legacy era. */
const MOST_ROUNDS = 50;

/** Name and version that the server gives its clients. */
export interface ServerName {
  readonly name: string;
  readonly version: string;
}

/** The schemas of the tools, prepared once for all connections. */
export class ToolSchemas {
  readonly agentInput: StandardSchemaWithJSON<AgentArguments>;
  readonly turnInput: StandardSchemaWithJSON<{ readonly turnId: string }>;
  readonly turnOutput: StandardSchemaWithJSON;
  readonly #sdk: McpServerSdk;
  readonly #outputs = new WeakMap<AgentTool["definition"], StandardSchemaWithJSON>();

  constructor(sdk: McpServerSdk) {
    const { fromJsonSchema } = sdk.server;
    this.#sdk = sdk;
    this.agentInput = fromJsonSchema<AgentArguments>({ ...agentInputSchema });
    this.turnInput = fromJsonSchema<{ readonly turnId: string }>({ ...turnInputSchema });
    this.turnOutput = fromJsonSchema({ ...turnOutputSchema(undefined) });
  }

  outputOf(tool: AgentTool): StandardSchemaWithJSON {
    const known =
      this.#outputs.get(tool.definition) ?? this.#sdk.server.fromJsonSchema({ ...outputSchemaOfTool(tool) });
    this.#outputs.set(tool.definition, known);
    return known;
  }
}

export interface ProtocolServerSettings extends CallSettings {
  readonly schemas: ToolSchemas;
  readonly name: ServerName;
}

/** Returns the side of a call: that of its HTTP request, or the only one of a connection. */
export type SideOf = (context: ServerContext) => CallSide;

/** The protocol's server for one caller: a tool for each agent, and the tools for their turns. */
export function protocolServer(
  caller: CallSide["caller"],
  sideOf: SideOf,
  settings: ProtocolServerSettings,
): McpServer {
  const { sdk, tools, schemas, name, stateKey } = settings;
  const codec = stateCodec(sdk, caller, stateKey);
  const server = new sdk.server.McpServer(name, {
    capabilities: { tools: { listChanged: false } },
    requestState: { verify: (state, context) => codec.verify(state, context) },
    inputRequired: { maxRounds: MOST_ROUNDS },
  });
  const callOf = (context: ServerContext): ToolCall => ({
    context,
    capabilities: capabilitiesOf(sdk, server, context),
  });
  const callsOf = (context: ServerContext): AgentCalls => new AgentCalls(sideOf(context), settings);
  for (const tool of tools) {
    const readOnlyHint = isReadOnly(tool.definition);
    server.registerTool(
      tool.name,
      {
        description: tool.description,
        inputSchema: schemas.agentInput,
        outputSchema: schemas.outputOf(tool),
        annotations: { readOnlyHint, destructiveHint: !readOnlyHint, idempotentHint: false, openWorldHint: true },
      },
      async (args, context): Promise<CallToolResult | InputRequiredResult> =>
        await callsOf(context).callAgent(tool, args, callOf(context)),
    );
  }
  server.registerTool(
    TURN_RESULT,
    {
      description: "Waits for the turn of an earlier call that had not ended, and returns its answer.",
      inputSchema: schemas.turnInput,
      outputSchema: schemas.turnOutput,
      annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    },
    async ({ turnId }, context): Promise<CallToolResult | InputRequiredResult> =>
      await callsOf(context).callResult(turnId, callOf(context)),
  );
  server.registerTool(
    TURN_ABORT,
    {
      description: "Ends the turn of an earlier call.",
      inputSchema: schemas.turnInput,
      outputSchema: schemas.turnOutput,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    },
    async ({ turnId }, context): Promise<CallToolResult> => await callsOf(context).callAbort(turnId),
  );
  return server;
}

/** Clients of the modern era declare their capabilities with each request, those of the legacy era once. */
function capabilitiesOf(sdk: McpServerSdk, { server }: McpServer, { mcpReq }: ServerContext): ToolCall["capabilities"] {
  const envelope = mcpReq.envelope as Readonly<Record<string, unknown>> | undefined;
  const declared = envelope?.[sdk.server.CLIENT_CAPABILITIES_META_KEY];
  return (declared as ToolCall["capabilities"]) ?? server.getClientCapabilities();
}
