import {
  anyRule,
  type Clock,
  clockRule,
  type OptionsSchema,
  functionRule,
  hasMethods,
  listRule,
  nameRule,
  optionsRule,
  ruleOf,
  wholeNumberRule,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Runtime } from "../runtime/index.ts";
import type { Authenticate, Identity } from "./core/identity.ts";
import { limitsOptionsSchema, type ServeLimits } from "./core/limits.ts";
import type { LogLine } from "./core/metrics.ts";
import type { MetricsAccess } from "./core/probes.ts";
import type { Surface } from "./core/surface.ts";
import { type WebhookOptions, webhooksOptionsSchema } from "./webhooks/webhooks.ts";

/** Runtimes by the tenant of the identities that they serve. */
export type RuntimesByTenant = Readonly<Record<string, Runtime>>;

/** What `serveRuntime()` takes beside the runtime. */
export interface ServeOptions {
  /** Says who sends a request: `tokenAuth`, `entraAuth`, `openAuth`, or a function of your own. */
  readonly authenticate: Authenticate;
  /** Default: troupe's own API, `apiSurface()`. */
  readonly surfaces?: readonly Surface[] | undefined;
  /** Origins of web pages that may call, as `https://app.example.com`. Default: none but the server's own. */
  readonly cors?: readonly string[] | undefined;
  /**
   * Values that `Host` may have, with ports, besides the loopback names of a server that listens. Default: any; those
   * names alone as soon as it listens on loopback alone.
   */
  readonly hosts?: readonly string[] | undefined;
  /** With one runtime: the tenant that identities may name. Default: that of the runtime. */
  readonly tenant?: string | undefined;
  /** How much callers may send and start. Default: see `ServeLimits`. */
  readonly limits?: ServeLimits | undefined;
  /** Lets callers name receivers that are told what happens in their turns. Default: none are told. */
  readonly webhooks?: WebhookOptions | undefined;
  /**
   * Proxies in front of the server, each of which adds the address it sees to `X-Forwarded-For`. Default 0: the header is
   * not read, and limits by address count the other side of the connection.
   */
  readonly proxies?: number | undefined;
  /** The clients that see `/metrics`. Default `local`: those on this machine that came through no proxy. */
  readonly metrics?: MetricsAccess | undefined;
  /** The path that the handler is mounted at, as `/troupe`. Default: none, its routes are at the root. */
  readonly basePath?: string | undefined;
  /** Longest wait of a blocking call, in milliseconds. Default 600,000. */
  readonly waitMs?: number | undefined;
  /** Silence in a stream until a comment is sent, in milliseconds. Default 15,000. */
  readonly keepAliveMs?: number | undefined;
  /** Time after which a client that does not read its stream is dropped, in milliseconds. Default 60,000. */
  readonly stallMs?: number | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
  /** Called with each answered request, and with each one that was sent to a receiver. Default: nothing is logged. */
  readonly onLog?: ((line: LogLine) => void) | undefined;
}

const metricsRule = ruleOf('"local", "open", "off" or { scope }', (value) => {
  if (typeof value !== "object" || value === null) return ["local", "open", "off"].includes(value as string);
  return "scope" in value && typeof value.scope === "string" && value.scope !== "";
});

const basePathRule = ruleOf(
  'a path like "/troupe", without a trailing slash',
  (value) => typeof value === "string" && /^(?:\/[\w.~-]+)+$/.test(value),
);

export const serveOptionsSchema: OptionsSchema<ServeOptions> = {
  rules: {
    authenticate: functionRule,
    surfaces: listRule("a list of surfaces", anyRule),
    cors: listRule("a list of origins", nameRule),
    hosts: listRule("a list of hosts", nameRule),
    tenant: nameRule,
    basePath: basePathRule,
    limits: optionsRule(limitsOptionsSchema),
    webhooks: optionsRule(webhooksOptionsSchema),
    proxies: wholeNumberRule(0, 10),
    metrics: metricsRule,
    waitMs: wholeNumberRule(1, 2 ** 31 - 1),
    keepAliveMs: wholeNumberRule(1, 2 ** 31 - 1),
    stallMs: wholeNumberRule(1, 2 ** 31 - 1),
    clock: clockRule,
    onLog: functionRule,
  },
  needed: ["authenticate"],
  instead: { auth: "authenticate", origins: "cors", timeout: "waitMs", prefix: "basePath", base: "basePath" },
};

type RuntimeOf = (identity: Identity) => Runtime | undefined;

export interface ServedRuntimes {
  readonly runtimes: RuntimesByTenant;
  readonly runtimeOf: RuntimeOf;
}

/** The runtime of each identity. Throws `InvalidInputError` for anything but runtimes. */
export function runtimesOf(given: Runtime | RuntimesByTenant, tenant: string | undefined): ServedRuntimes {
  if (hasMethods(given, ["agent", "find", "follow", "decide"])) {
    const runtime = given as Runtime;
    const served = [undefined, runtime.tenant, tenant];
    const runtimeOf = (identity: Identity): Runtime | undefined =>
      served.includes(identity.tenant) ? runtime : undefined;
    return { runtimes: { [runtime.tenant]: runtime }, runtimeOf };
  }
  if (typeof given !== "object" || given === null || Object.keys(given).length === 0) {
    throw new InvalidInputError("serveRuntime() takes a runtime, or an object with a runtime for each tenant");
  }
  const runtimes = new Map<string, Runtime>(Object.entries(given as RuntimesByTenant));
  return { runtimes: given as RuntimesByTenant, runtimeOf: (identity) => runtimes.get(identity.tenant ?? "") };
}
