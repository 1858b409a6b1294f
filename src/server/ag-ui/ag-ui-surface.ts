import { z } from "zod";
import { type OptionsSchema, listRule, nameRule, optionsOf } from "../../base/index.ts";
import { NotFoundError } from "../../errors/index.ts";
import type { Failure } from "../core/failures.ts";
import { type Call, type Route, route } from "../core/route.ts";
import type { Surface } from "../core/surface.ts";
import { runInputSchema } from "./run-input.ts";
import { cancelRun, startRun } from "./run-start.ts";
import { runFrames } from "./run-stream.ts";

/** Options of `agUiSurface()`. */
export interface AgUiSurfaceOptions {
  /** Names of the definitions to serve. Default: all definitions of the runtime. */
  readonly agents?: readonly string[] | undefined;
}

const agUiOptionsSchema: OptionsSchema<AgUiSurfaceOptions> = {
  rules: { agents: listRule("a list of names of definitions", nameRule) },
  instead: { definitions: "agents", names: "agents" },
};

/** AG-UI 1.0: each agent is at `POST /ag-ui/{agent}`. A thread is an agent, a run is a turn or a section of one. */
export function agUiSurface(given: AgUiSurfaceOptions = {}): Surface {
  const { agents } = optionsOf<AgUiSurfaceOptions>(given, "agUiSurface()", agUiOptionsSchema);
  return { name: "ag-ui", paths: ["/ag-ui"], routes: routesOf(agents), failure: runError };
}

const params = z.object({ agent: z.string().meta({ description: "Name of a definition." }) });

function routesOf(served: readonly string[] | undefined): readonly Route[] {
  const nameOf = ({ caller, params: { agent } }: Call<z.output<typeof params>>): string => {
    if (caller.runtime.definitions.has(agent) && (served?.includes(agent) ?? true)) return agent;
    throw new NotFoundError("there is no such agent");
  };
  return [
    route({
      id: "agUi.run",
      method: "POST",
      path: "/ag-ui/{agent}",
      access: "caller",
      summary: "Runs the agent, and streams its events",
      params,
      body: runInputSchema,
      responses: { 200: { description: "The events of the run.", stream: z.looseObject({ type: z.string() }) } },
      handle: async (call) => {
        const { run, isReplayed } = await startRun(call.caller, nameOf(call), call.body);
        const headers = isReplayed ? { "idempotency-replayed": "true" } : {};
        return await call.stream((signal) => runFrames(call.caller, run, signal), { headers });
      },
    }),
    route({
      id: "agUi.cancel",
      method: "POST",
      path: "/ag-ui/{agent}/cancel",
      access: "caller",
      summary: "Ends the open run of a thread. A run continues when its client disconnects.",
      params,
      body: z.object({ threadId: z.string(), runId: z.string().optional(), reason: z.string().optional() }),
      responses: { 200: { description: "Whether a run was open.", schema: z.object({ cancelled: z.boolean() }) } },
      handle: async (call) => Response.json({ cancelled: await cancelRun(call.caller, nameOf(call), call.body) }),
    }),
  ];
}

/** The answer to a request that failed before the run started: its status, and an error event. */
function runError({ status, code, message, headers }: Failure): Response {
  return Response.json({ type: "RUN_ERROR", message, code }, { status, headers });
}
