import { type SurfaceAnswer, type SurfaceDriver, surfaceSuite } from "../contracts/surfaces.contract.ts";
import { plainSurface } from "./plain-surface.ts";
import { requestOf } from "./served.ts";

const driver: SurfaceDriver = {
  surfaces: () => [plainSurface],
  chosenName: "mine",
  messageIs: "decision",
  foreignStatus: 200,
  strangerStatus: 404,
  request: ({ as, text, conversation, key, signal }) =>
    requestOf("/plain", {
      as,
      method: "POST",
      body: { text, conversation },
      headers: key === undefined ? {} : { "idempotency-key": key },
      ...(signal ? { signal } : {}),
    }),
  read: async (_, response) => ({
    ...((await response.json()) as Omit<SurfaceAnswer, "status" | "isReplayed">),
    status: response.status,
    isReplayed: response.headers.get("idempotency-replayed") === "true",
  }),
  decide: (requestId, verdict, as) =>
    requestOf(`/plain/requests/${encodeURIComponent(requestId)}`, { as, method: "POST", body: { verdict } }),
};

surfaceSuite("a plain surface", driver);
