import { apiSurface, openaiSurface } from "troupe/server";
import { type SurfaceAnswer, type SurfaceDriver, surfaceSuite } from "../../contracts/surfaces.contract.ts";
import { requestOf } from "../served.ts";

interface Completion {
  readonly choices?: readonly [{ readonly message: { readonly content: string } }];
  readonly troupe?: {
    readonly turnId: string;
    readonly status: string;
    readonly conversation: string;
    readonly requests: readonly { readonly requestId: string }[];
  };
}

/** Conversations by header, for clients without a history. Decisions use troupe's own API. */
const driver: SurfaceDriver = {
  surfaces: () => [openaiSurface(), apiSurface()],
  chosenName: "holiday",
  messageIs: "decision",
  foreignStatus: 200,
  strangerStatus: 404,
  request: ({ as, text, conversation, key, signal }) => {
    const name = conversation ?? (key === undefined ? crypto.randomUUID() : "keyed");
    return requestOf("/v1/chat/completions", {
      as,
      method: "POST",
      body: { model: "desk", messages: [{ role: "user", content: text }] },
      headers: { "x-troupe-conversation": name, ...(key === undefined ? {} : { "idempotency-key": key }) },
      ...(signal ? { signal } : {}),
    });
  },
  read: async (_, response): Promise<SurfaceAnswer> => {
    const { choices, troupe } = (await response.json()) as Completion;
    return {
      status: response.status,
      text: troupe?.status === "completed" ? (choices?.[0].message.content ?? null) : null,
      waitsFor: (troupe?.requests ?? []).map(({ requestId }) => requestId),
      isReplayed: response.headers.get("idempotency-replayed") === "true",
      conversation: troupe?.conversation ?? "",
      turn: troupe?.turnId ?? "",
    };
  },
  decide: (requestId, verdict, as) =>
    requestOf(`/api/requests/${encodeURIComponent(requestId.replace("#", "."))}`, {
      as,
      method: "POST",
      body: {
        verdict: verdict === "approve" ? "approved" : "rejected",
        argumentsHash: hashes.get(requestId) ?? "none",
      },
    }),
};

const hashes = new Map<string, string>();
const { read } = driver;
surfaceSuite("OpenAI", {
  ...driver,
  read: async (served, response, message) => {
    const answer = await read(served, response.clone(), message);
    const { troupe } = (await response.json()) as {
      troupe?: { requests: readonly { requestId: string; argumentsHash: string }[] };
    };
    for (const { requestId, argumentsHash } of troupe?.requests ?? []) hashes.set(requestId, argumentsHash);
    return answer;
  },
});
