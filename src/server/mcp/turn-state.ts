import { randomBytes } from "node:crypto";
import type { RequestStateCodec } from "@modelcontextprotocol/server";
import { InvalidInputError } from "../../errors/index.ts";
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

const SHORTEST_KEY = 32;

/** How to make a key, for error messages. */
export const HOW_TO_MAKE_A_KEY = "openssl rand -base64 32";

/** The key that signs states. Without a given one, it is only valid in this process. */
export function stateKeyOf(given: string | undefined): string {
  if (given === undefined) return randomBytes(SHORTEST_KEY).toString("base64");
  if (Buffer.byteLength(given) >= SHORTEST_KEY) return given;
  throw new InvalidInputError(
    `stateKey has ${Buffer.byteLength(given)} bytes; expected at least ${SHORTEST_KEY}: make one with ${HOW_TO_MAKE_A_KEY}`,
  );
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
