import type { ClientCapabilities, ClientContext } from "@modelcontextprotocol/client";
import type { JsonObject } from "../state/index.ts";
import { HeldCall } from "./held-call.ts";
import type { ConnectionHooks, McpConnection } from "./mcp-connection.ts";
import type { McpInputOptions } from "./mcp-input-options.ts";
import { listedRoots } from "./mcp-roots.ts";

const RELATED_TASK = "io.modelcontextprotocol/related-task";

/** What the connections to a server need so that it can ask for input. Only what has a handler is declared. */
export function inputHooksOf(options: McpInputOptions): ConnectionHooks {
  const { roots } = options;
  const capabilities = legacyCapabilitiesOf(options);
  return {
    capabilities,
    callCapabilities: modernCapabilitiesOf(options),
    prepare: (client, connection) => {
      if (capabilities.elicitation !== undefined) {
        client.setRequestHandler("elicitation/create", async (request, context) => asked(connection, request, context));
      }
      if (capabilities.sampling !== undefined) {
        client.setRequestHandler("sampling/createMessage", async (request, context) =>
          asked(connection, request, context),
        );
      }
      if (roots !== undefined) client.setRequestHandler("roots/list", () => ({ roots: listedRoots(roots) }));
    },
    // Nothing in a request of the older era states which call it belongs to.
    isSerial: (client) => client.getProtocolEra() === "legacy" && mayAskDuringCalls(options),
  };
}

/** The answer to a request of the server during its only call. */
async function asked<Answer>(
  { calls }: McpConnection,
  { method, params }: { readonly method: string; readonly params: unknown },
  { mcpReq }: ClientContext,
): Promise<Answer> {
  // A question of a task belongs to none of the calls.
  if (isOfTask(params)) throw new Error("the client refuses: questions of tasks are not supported");
  const [call] = calls;
  if (!(call?.context instanceof HeldCall)) throw new Error("the client refuses: no call of a tool is open");
  return (await call.context.ask({ method, params: params as JsonObject }, mcpReq.signal)) as Answer;
}

function isOfTask(params: unknown): boolean {
  const meta = typeof params === "object" && params !== null ? (Reflect.get(params, "_meta") as unknown) : undefined;
  return typeof meta === "object" && meta !== null && RELATED_TASK in meta;
}

/** What the client declares to servers of the older era: what they ask for arrives while a call is under way. */
function legacyCapabilitiesOf({ elicitation, sampling, roots }: McpInputOptions): ClientCapabilities {
  return {
    ...(elicitation === true ? { elicitation: { form: {}, url: {} } } : {}),
    ...(isEnabled(sampling) ? { sampling: {} } : {}),
    ...(roots === undefined ? {} : { roots: {} }),
  };
}

/** What the client declares to servers of the newer era, with each call of a tool. */
function modernCapabilitiesOf(options: McpInputOptions): ClientCapabilities {
  return legacyCapabilitiesOf({ ...options, elicitation: options.elicitation !== false });
}

/** Whether a server of the older era may ask something that belongs to a call. */
function mayAskDuringCalls({ elicitation, sampling }: McpInputOptions): boolean {
  return elicitation === true || isEnabled(sampling);
}

function isEnabled(sampling: McpInputOptions["sampling"]): boolean {
  return sampling !== undefined && sampling !== false;
}
