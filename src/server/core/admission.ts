import type { Clock } from "../../base/index.ts";
import type { Runtime } from "../../runtime/index.ts";
import { AddressLimits } from "./addresses.ts";
import { callerKey } from "./call.ts";
import { Caller } from "./caller.ts";
import { unauthenticated } from "./failures.ts";
import { type Authenticate, checkedIdentity, type Identity } from "./identity.ts";
import type { Limits } from "./limits.ts";
import { assertLocal } from "./origins.ts";
import type { Route } from "./route.ts";
import type { Surface } from "./surface.ts";
import { TurnAdmission } from "./turn-admission.ts";

/** A request before it reaches its route. */
export interface RequestContext {
  readonly request: Request;
  readonly requestId: string;
  readonly cut: (() => void) | undefined;
  /** Remote address of the connection, if known. */
  readonly peer: string | undefined;
  /** The address whose requests are counted; `undefined` if they are not counted. */
  readonly address: string | undefined;
  /** Time of arrival, in `clock.elapsed()`. */
  readonly begun: number;
  route: string | null;
  identity: Identity | null;
  code: string | null;
  error: string | null;
}

interface AdmissionDependencies {
  readonly authenticate: Authenticate;
  readonly runtimeOf: (identity: Identity) => Runtime | undefined;
  readonly limits: Limits;
  readonly clock: Clock;
}

/** The route of a request, and its path parameters. */
interface Target {
  readonly surface: Surface;
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Authenticates requests, and refuses those above the limits of an address or a caller.
 *
 * Invariant: a request for a tenant without a runtime gets the same answer as one with an unknown token, on every route.
 */
export class Admission {
  readonly #dependencies: AdmissionDependencies;
  readonly #addresses: AddressLimits;
  readonly #turns: TurnAdmission;

  constructor(dependencies: AdmissionDependencies) {
    this.#dependencies = dependencies;
    this.#addresses = new AddressLimits(dependencies.limits);
    this.#turns = new TurnAdmission(dependencies.limits);
  }

  /** Counts a request that needs no caller. Rejects with `ServerError` (429). */
  async assertFewAnonymous({ address }: RequestContext): Promise<void> {
    await this.#addresses.takeAnonymous(address);
  }

  /** The caller of a request; `null` on public routes. Rejects with `ServerError` (401, 403, 429, 503). */
  async callerOf(passage: RequestContext, target: Target): Promise<Caller | null> {
    const { route, surface } = target;
    if (route.access !== "caller") {
      await this.assertFewAnonymous(passage);
      if (route.access === "local") assertLocal(passage.request, passage.peer);
      return null;
    }
    const identity = await this.#identityOf(passage, target);
    passage.identity = identity;
    const { limits, clock, runtimeOf } = this.#dependencies;
    await limits.requests.take(callerKey(identity));
    const runtime = runtimeOf(identity);
    if (runtime === undefined) {
      passage.error = `no runtime serves the tenant ${JSON.stringify(identity.tenant ?? null)}`;
      throw unauthenticated(passage.request.headers.has("authorization"));
    }
    return new Caller(identity, {
      runtime,
      clock,
      deniesStrangers: surface.strangers === "unauthenticated",
      admitTurn: () => this.#turns.admit(runtime, identity),
      limits,
    });
  }

  async #identityOf({ request, address }: RequestContext, { route, params }: Target): Promise<Identity> {
    const credentials = request.headers.get("authorization");
    if (credentials !== null) await this.#addresses.assertMayTry(address, credentials);
    const identity =
      (credentials === null ? await this.#byRoute(route, request, params) : null) ??
      checkedIdentity(await this.#dependencies.authenticate(request));
    if (identity !== null) {
      if (credentials !== null) this.#addresses.accepted(address, credentials);
      return identity;
    }
    if (credentials === null) await this.#addresses.takeAnonymous(address);
    else await this.#addresses.refused(address, credentials);
    throw unauthenticated(credentials !== null);
  }

  async #byRoute({ identify }: Route, request: Request, params: Target["params"]): Promise<Identity | null> {
    const query = new URL(request.url).searchParams;
    return (await identify?.({ params, query }, this.#dependencies.clock.now())) ?? null;
  }
}
