import { type Call, type Route, route, type StartedTurn, type Surface, jsonFailure } from "troupe/server";
import { z } from "zod";

const messageSchema = z.strictObject({ text: z.string(), conversation: z.string().optional() });
const decideSchema = z.strictObject({ verdict: z.enum(["approve", "reject"]) });

async function answerOf(call: Call, started: StartedTurn, conversation: string): Promise<Response> {
  const { turn, turnId, isReplayed } = started;
  const rest = await call.within(turn.settled);
  const settled = rest?.value;
  const requests = settled?.status === "waiting" && settled.reason === "request" ? settled.requests : [];
  const text = settled?.status === "completed" ? settled.text : null;
  const body = { turn: turnId, conversation, text, waitsFor: requests.map(({ requestId }) => requestId) };
  return Response.json(body, { headers: isReplayed ? { "idempotency-replayed": "true" } : {} });
}

const routes: readonly Route[] = [
  route({
    id: "send",
    method: "POST",
    path: "/plain",
    access: "caller",
    summary: "A message",
    body: messageSchema,
    responses: {},
    handle: async (call) => {
      const { caller, body, idempotencyKey } = call;
      const key = idempotencyKey === undefined ? undefined : { route: "plain.send", value: idempotencyKey };
      const name = body.conversation ?? (key === undefined ? crypto.randomUUID() : `key ${key.value}`);
      const agent = await caller.openAgent({ definition: "desk", name });
      return await answerOf(call, await caller.plainMessage(agent, body.text, { key }), name);
    },
  }),
  route({
    id: "decide",
    method: "POST",
    path: "/plain/requests/{requestId}",
    access: "caller",
    summary: "A decision",
    params: z.object({ requestId: z.string() }),
    body: decideSchema,
    responses: {},
    handle: async ({ caller, params, body }) => {
      const verdict = body.verdict === "approve" ? "approved" : "rejected";
      return Response.json(await caller.decide(params.requestId, { verdict }));
    },
  }),
];

/** The smallest surface that uses all rules of callers. */
export const plainSurface: Surface = { name: "plain", paths: ["/plain"], routes, failure: jsonFailure };
