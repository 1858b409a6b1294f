import { apiSurface } from "troupe/server";
import { type SurfaceDriver, surfaceSuite } from "../../contracts/surfaces.contract.ts";
import { requestOf } from "../served.ts";

/** The fields of a turn that the suite reads. */
interface TurnAnswer {
  readonly turnId?: string;
  readonly agentId?: string;
  readonly result?: { readonly text: string } | null;
  readonly status?: string;
  readonly requests?: readonly { readonly requestId: string; readonly argumentsHash: string }[];
}

const keyed = (key: string | undefined) => (key === undefined ? {} : { "idempotency-key": key });

const driver: SurfaceDriver = {
  surfaces: () => [apiSurface()],
  // An agent is created first, and a turn is never a decision.
  messageIs: "turn",
  open: async ({ server }, { as, key }) => {
    const made = await server.fetch(
      requestOf("/api/agents", { as, method: "POST", body: { definition: "desk" }, headers: keyed(key) }),
    );
    return ((await made.json()) as { agentId: string }).agentId;
  },
  foreignStatus: 404,
  strangerStatus: 404,
  request: ({ as, text, conversation = "", key, signal }) =>
    requestOf(`/api/agents/${conversation}/turns`, {
      as,
      method: "POST",
      body: { input: text },
      headers: { prefer: "wait=30", ...keyed(key) },
      ...(signal ? { signal } : {}),
    }),
  read: async (_, response) => {
    const { turnId = "", agentId = "", result, requests = [], status } = (await response.json()) as TurnAnswer;
    return {
      status: response.status,
      text: status === "completed" ? (result?.text ?? null) : null,
      // The hash is the one shown to the deciding user.
      waitsFor: requests.map(({ requestId, argumentsHash }) => `${requestId.replace("#", ".")} ${argumentsHash}`),
      isReplayed: response.headers.get("idempotency-replayed") === "true",
      conversation: agentId,
      turn: turnId,
    };
  },
  decide: (shown, verdict, as) => {
    const [requestId = "", argumentsHash = ""] = shown.split(" ");
    const body = { verdict: verdict === "approve" ? "approved" : "rejected", argumentsHash };
    return requestOf(`/api/requests/${requestId}`, { as, method: "POST", body });
  },
};

surfaceSuite("troupe's own API", driver);
