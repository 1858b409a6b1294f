import type { Failure } from "./failures.ts";
import type { Route } from "./route.ts";
import type { WebhookForm } from "./webhooks.ts";

/** A protocol that a server speaks: its routes, and the form of its errors. */
export interface Surface {
  /** Unique in its server; also the label of its routes in logs and metrics. */
  readonly name: string;
  /** Prefixes of its paths, as `/api`. A request below one of them that matches no route gets this surface's error form. */
  readonly paths: readonly string[];
  /** Its routes; the first that fits a request answers it. */
  readonly routes: readonly Route[];
  /** Gives an error the form of the protocol. */
  failure(failure: Failure, request: Request): Response | Promise<Response>;
  /** Headers that pages of other origins may send and read, besides those of all surfaces. In lower case. */
  readonly headers?: readonly string[] | undefined;
  /**
   * How another caller's agent, turn or request is answered: like an unknown id, or like a request without a token.
   * Default `not_found`.
   */
  readonly strangers?: "not_found" | "unauthenticated" | undefined;
  /** How receivers that were named on this surface are told what happens. Default: it has none. */
  readonly webhooks?: WebhookForm | undefined;
}
