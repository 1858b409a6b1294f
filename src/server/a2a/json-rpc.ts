import type { A2AError } from "@a2a-js/sdk/errors";
import { z } from "zod";
import type { Call } from "../core/route.ts";
import { type BindingContext, type RpcId, streamOf } from "./bindings.ts";
import { answerLegacy } from "./legacy.ts";
import { protocolError, rpcCodes } from "./protocol-errors.ts";
import type { Sdk } from "./sdk.ts";
import { requestedVersion } from "./versions.ts";

const envelopeSchema = z.object({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.int(), z.null()]).optional(),
  method: z.string().min(1),
  params: z.unknown(),
});

/** Answers one JSON-RPC request. Protocol errors have status 200, as the binding requires. */
export async function answerRpc(call: Call, place: BindingContext): Promise<Response> {
  const { sdk, methods, agent } = place;
  const { data: envelope } = envelopeSchema.safeParse(call.body);
  const id: RpcId = envelope?.id ?? null;
  if (envelope === undefined) {
    return rpcAnswer(null, { error: { code: rpcCodes.invalidRequest, message: "this is not a JSON-RPC 2.0 request" } });
  }
  try {
    const version = requestedVersion(call.request);
    if (version === "0.3") return await answerLegacy(call, place, { ...envelope, id });
    if (version !== "1.0") throw new sdk.errors.VersionNotSupportedError(`A2A-Version: this agent speaks 1.0 and 0.3`);
    const method = Object.hasOwn(methods, envelope.method) ? methods[envelope.method] : undefined;
    if (method === undefined) {
      return rpcAnswer(id, { error: { code: rpcCodes.noMethod, message: "there is no such method" } });
    }
    const { params = {} } = envelope;
    if (typeof params !== "object" || params === null || Array.isArray(params)) {
      throw new sdk.errors.RequestMalformedError("params must be an object");
    }
    if ("run" in method) {
      const result = await method.run(agent, params);
      return rpcAnswer(id, { result }, agent.headers);
    }
    return await streamOf(sdk, call, {
      agent,
      open: (signal) => method.stream(agent, params, signal),
      form: {
        item: (result) => ({ data: JSON.stringify({ jsonrpc: "2.0", id, result }) }),
        error: (thrown) => ({ data: JSON.stringify({ jsonrpc: "2.0", id, error: rpcErrorOf(sdk, thrown) }) }),
      },
    });
  } catch (thrown) {
    const error = rpcErrorOf(sdk, thrown);
    if (error === undefined) throw thrown;
    return rpcAnswer(id, { error });
  }
}

/** Returns `undefined` if the protocol has no equivalent of the error. */
function rpcErrorOf(sdk: Sdk, thrown: unknown): object | undefined {
  const error: A2AError | undefined = protocolError(sdk, thrown);
  return error && sdk.errors.toJsonRpcError(error);
}

function rpcAnswer(
  id: RpcId,
  answer: { readonly result: unknown } | { readonly error: object },
  headers: Readonly<Record<string, string>> = {},
): Response {
  return Response.json({ jsonrpc: "2.0", id, ...answer }, { headers });
}
