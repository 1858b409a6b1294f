import OpenAI, { type ClientOptions } from "openai";
import type { RuntimeServer } from "troupe/server";
import { tokens, type User } from "../served.ts";

interface ClientPlace extends Pick<ClientOptions, "maxRetries" | "defaultHeaders"> {
  readonly as?: User;
  readonly token?: string;
  readonly path?: string;
  /** Called with each request before it is sent. */
  readonly onRequest?: (request: Request) => void;
}

/** The official client, over the handler of a server or any fetch. */
export function clientOf(
  server: Pick<RuntimeServer, "fetch">,
  { as = "ann", token = tokens[as], path = "/v1", onRequest, maxRetries = 0, defaultHeaders = {} }: ClientPlace = {},
): OpenAI {
  return new OpenAI({
    apiKey: token,
    baseURL: `http://127.0.0.1${path}`,
    maxRetries,
    defaultHeaders,
    fetch: async (input, init) => {
      const request = new Request(input, init);
      onRequest?.(request);
      return await server.fetch(request);
    },
  });
}
