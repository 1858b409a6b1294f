import type { RequestStateCodec } from "@modelcontextprotocol/server";
import type { Caller } from "../core/caller.ts";
import type { AskedRequest } from "./elicitations.ts";
import type { McpServerSdk } from "./sdk.ts";

/** What a client returns with its answers: the tool, the turn and the requests that it was shown. */
export interface TurnState {
  readonly tool: string;
  readonly turnId: string;
  /** The requests by the key of their form. */
  readonly requests: Readonly<Record<string, AskedRequest>>;
}

export interface StateKey {
  readonly key: string;
  /** Seconds for which a state is accepted. */
  readonly ttlSeconds: number;
}

/** The codec for one caller: the state of another owner or tenant is refused. */
export function stateCodec(
  { server }: McpServerSdk,
  { ownerId, tenant }: Pick<Caller, "ownerId" | "tenant">,
  { key, ttlSeconds }: StateKey,
): RequestStateCodec<TurnState> {
  const owner = JSON.stringify([tenant, ownerId]);
  return server.createRequestStateCodec<TurnState>({ key, ttlSeconds, bind: () => owner });
}
