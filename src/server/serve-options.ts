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
import { type StubOptions, stubOptionsRule } from "./core/stub-access.ts";
import type { Surface } from "./core/surface.ts";
import { type WebhookOptions, webhooksOptionsSchema } from "./webhooks/webhooks.ts";

/** Runtimes, keyed by the tenant that they serve. */
export type RuntimesByTenant = Readonly<Record<string, Runtime>>;

/** Options of `serveRuntime()`. */
export interface ServeOptions {
  /** Authenticates requests: `tokenAuth`, `entraAuth`, `openAuth`, or your own function. */
  readonly authenticate: Authenticate;
  /** Protocols to serve. Default: troupe's own API, `apiSurface()`. */
  readonly surfaces?: readonly Surface[] | undefined;
  /** Origins of web pages that may call, such as `https://app.example.com`. Default: only the server's own. */
  readonly cors?: readonly string[] | undefined;
  /**
   * Allowed values of `Host`, with ports, in addition to the loopback names of a listening server. Default: any; only
   * the loopback names once the server listens only on loopback.
   */
  readonly hosts?: readonly string[] | undefined;
  /** The tenant of the only runtime, as identities name it. Default: the runtime's own. */
  readonly tenant?: string | undefined;
  /** Limits of callers. Default: see `ServeLimits`. */
  readonly limits?: ServeLimits | undefined;
  /** Lets callers add webhooks for their turns. Default: no webhooks. */
  readonly webhooks?: WebhookOptions | undefined;
  /**
   * Lets callers of troupe's own API create agents with stubs in the place of tools. Default: refused with 403. The secret is for programs
   * that test; do not give it to pages.
   */
  readonly stubs?: StubOptions | undefined;
  /**
   * Number of proxies in front of the server, each of which appends the address of its client to `X-Forwarded-For`.
   * Default 0: the header is not read, and limits by address count the remote address of the connection.
   */
  readonly proxies?: number | undefined;
  /** Access to `/metrics`. Default `local`: clients on this machine without a proxy. */
  readonly metrics?: MetricsAccess | undefined;
  /** The path that the handler is mounted at, such as `/troupe`. Default: none, its routes are at the root. */
  readonly basePath?: string | undefined;
  /** Longest wait of a blocking call, in milliseconds. Default 600,000. */
  readonly waitMs?: number | undefined;
  /** Silence in a stream before a keep-alive comment is sent, in milliseconds. Default 15,000. */
  readonly keepAliveMs?: number | undefined;
  /** Time before a client that does not read its stream is dropped, in milliseconds. Default 60,000. */
  readonly stallMs?: number | undefined;
  /** Source of time. Default: the system's clock. */
  readonly clock?: Clock | undefined;
  /** Called for each answered request and for each webhook request. Default: no logging. */
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
    stubs: stubOptionsRule,
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

/** Resolves the runtime of each identity. Throws `InvalidInputError` for other values. */
export function runtimesOf(given: Runtime | RuntimesByTenant, tenant: string | undefined): ServedRuntimes {
  if (hasMethods(given, ["agent", "find", "follow", "decide"])) {
    const runtime = given as Runtime;
    const served = [undefined, runtime.tenant, tenant];
    const runtimeOf = (identity: Identity): Runtime | undefined =>
      served.includes(identity.tenant) ? runtime : undefined;
    return { runtimes: { [runtime.tenant]: runtime }, runtimeOf };
  }
  if (typeof given !== "object" || given === null || Object.keys(given).length === 0) {
    throw new InvalidInputError("serveRuntime() accepts a runtime, or an object with a runtime for each tenant");
  }
  const runtimes = new Map<string, Runtime>(Object.entries(given as RuntimesByTenant));
  return { runtimes: given as RuntimesByTenant, runtimeOf: (identity) => runtimes.get(identity.tenant ?? "") };
}
