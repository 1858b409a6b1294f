import { z } from "zod";
import { defineTool, type Tool } from "../tools/index.ts";
import { CallContexts } from "./call-contexts.ts";
import { RemoteCall } from "./remote-call.ts";
import { type RemoteAgentOptions, remoteOptionsOf } from "./remote-options.ts";

const DEFAULT_TIMEOUT_MS = 600_000;
const DEFAULT_MAX_BYTES = 8_000_000;
/** Added to the tool's own time limit, so that the call itself cancels its task. */
const CANCELLING_MS = 15_000;

const parameters = z.object({
  input: z.string().min(1).describe("What the agent is to do, in words, with everything that it has to know."),
});

/**
 * A tool that sends a task to an agent of another program over A2A, and waits for it. Needs the package `@a2a-js/sdk`,
 * which the first call loads; without it, calls fail with an error that names it. Throws `InvalidInputError` for
 * invalid options.
 */
export function remoteAgent(options: RemoteAgentOptions): Tool<{ input: string }> {
  const given = remoteOptionsOf(options);
  const { name, url, card, timeoutMs = DEFAULT_TIMEOUT_MS, needsApproval = false } = given;
  const { description = `Hands a task to the remote agent "${name}", and gives its answer.` } = given;
  const places = new CallContexts(given.context ?? "agent");
  const settings = {
    name,
    place: {
      url,
      card,
      allowedOrigins: (given.allowedOrigins ?? []).map((origin) => new URL(origin).origin),
      maxBytes: given.maxBytes ?? DEFAULT_MAX_BYTES,
    },
    auth: given.auth,
    honoursMessageIds: given.honoursMessageIds,
    timeoutMs,
    usage: given.usage,
    places,
  };
  return defineTool({
    name,
    description,
    parameters,
    // The sent message is noted, so that it is not sent again if that would start another task.
    effect: "keyed",
    timeoutMs: timeoutMs + CANCELLING_MS,
    needsApproval,
    describeCall: ({ input }) => `Hand this to the remote agent "${name}": ${input.slice(0, 2_000)}`,
    execute: async ({ input }, run) => await new RemoteCall(settings, run, input).perform(),
    cancel: async ({ input }, run) => await new RemoteCall(settings, run, input).cancel(),
  });
}
