import type { Failure } from "./failures.ts";
import type { Route } from "./route.ts";
import type { WebhookForm } from "./webhooks.ts";

/** A protocol of a server: its routes and the form of its errors. */
export interface Surface {
  /** Unique in its server; also the route label in logs and metrics. */
  readonly name: string;
  /**
   * Its path prefixes, such as `/api`. A request below one of them without a matching route gets this surface's error
   * form.
   */
  readonly paths: readonly string[];
  /** Its routes; the first match answers. */
  readonly routes: readonly Route[];
  /** Converts an error to the form of the protocol. */
  failure(failure: Failure, request: Request): Response | Promise<Response>;
  /** Headers that pages of other origins may send and read, in addition to those of all surfaces. In lower case. */
  readonly headers?: readonly string[] | undefined;
  /**
   * Answer to requests for another caller's agent, turn or request: as for an unknown id, or as for a missing token.
   * Default `not_found`.
   */
  readonly strangers?: "not_found" | "unauthenticated" | undefined;
  /** Webhooks of this surface's turns. Default: none. */
  readonly webhooks?: WebhookForm | undefined;
}
