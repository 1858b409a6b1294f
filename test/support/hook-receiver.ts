import type { IncomingHttpHeaders } from "node:http";
import { onTestFinished } from "vitest";
import { startRawServer } from "./raw-server.ts";

/** A request to a receiver. */
export interface HookCall {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The body, as JSON. */
  readonly body: unknown;
}

export interface HookReceiver {
  /** `http://127.0.0.1:port`, which servers must list as allowed. */
  readonly origin: string;
  readonly calls: readonly HookCall[];
  /** Resolves once `isThere` returns true for the received calls. */
  until(isThere: (calls: readonly HookCall[]) => boolean): Promise<readonly HookCall[]>;
}

/** A receiver of webhooks that is closed after the test. `statusOf` returns the status of each answer, `null` for none. Default: 200. */
export async function startReceiver(
  statusOf: (call: HookCall, count: number) => number | null = () => 200,
): Promise<HookReceiver> {
  const calls: HookCall[] = [];
  const waiting = new Set<() => void>();
  const server = await startRawServer((request, response, body) => {
    const call = { path: request.url ?? "", headers: request.headers, body: JSON.parse(body) as unknown };
    calls.push(call);
    const status = statusOf(call, calls.length);
    if (status !== null) response.writeHead(status).end();
    for (const look of waiting) look();
  });
  onTestFinished(() => server.stop());
  return {
    origin: server.origin,
    calls,
    async until(isThere) {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const look = (): void => (isThere(calls) ? resolve(undefined) : undefined);
      waiting.add(look);
      look();
      await promise;
      waiting.delete(look);
      return calls;
    },
  };
}

/** A deployment key: 32 equal bytes, in base64. */
export function webhookKey(value = 7): string {
  return Buffer.alloc(32, value).toString("base64");
}
