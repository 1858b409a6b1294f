/*
 * Connections by way of the environment's proxies. Loaded when Node was told to use them.
 */
import type { Dispatcher, EnvHttpProxyAgent } from "undici";
// @ts-expect-error Types are given for the whole package only.
import tunnelPart from "undici/lib/api/api-connect.js";
// @ts-expect-error Types are given for the whole package only.
import dispatcherPart from "undici/lib/dispatcher/dispatcher.js";
// @ts-expect-error Types are given for the whole package only.
import agentPart from "undici/lib/dispatcher/env-http-proxy-agent.js";

/** An agent that chooses the proxy of each address by the environment. */
export function proxyAgent(options: EnvHttpProxyAgent.Options): Dispatcher {
  // An agent asks its proxy for a tunnel by this method, which the package adds when it is loaded as a whole.
  (dispatcherPart as { readonly prototype: { connect: unknown } }).prototype.connect = tunnelPart;
  return new (agentPart as typeof EnvHttpProxyAgent)(options);
}
