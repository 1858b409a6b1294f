import type { Call } from "../core/route.ts";
import { type BindingContext, streamOf } from "./bindings.ts";
import { protocolError, restError, restJson } from "./protocol-errors.ts";
import { requestedVersion } from "./versions.ts";

/** Answers one request of the HTTP binding: a method of the protocol with its parameters. */
export async function answerRest(
  call: Call,
  { sdk, methods, agent }: BindingContext,
  { method: name, params }: { readonly method: string; readonly params: object },
): Promise<Response> {
  const failed = (thrown: unknown): Response => {
    const error = protocolError(sdk, thrown);
    if (error === undefined) throw thrown;
    return restError(sdk, error, thrown);
  };
  try {
    const version = requestedVersion(call.request);
    if (version !== "1.0") {
      throw new sdk.errors.VersionNotSupportedError(
        `A2A-Version: this binding supports 1.0, the request has ${version}`,
      );
    }
    const method = methods[name];
    if (method === undefined) throw new sdk.errors.UnsupportedOperationError("there is no such operation");
    if ("run" in method) {
      const answer = await method.run(agent, params);
      const { status = 200 } = method;
      if (status === 204) return new Response(null, { status, headers: agent.headers });
      return restJson(answer, { status, headers: agent.headers });
    }
    return await streamOf(sdk, call, {
      agent,
      open: (signal) => method.stream(agent, params, signal),
      form: {
        item: (item) => ({ data: JSON.stringify(item) }),
        error: (thrown) => ({
          event: "error",
          data: JSON.stringify(
            sdk.errors.toRestErrorBody(protocolError(sdk, thrown), sdk.errors.restStatusFor(thrown)),
          ),
        }),
      },
    });
  } catch (thrown) {
    return failed(thrown);
  }
}
