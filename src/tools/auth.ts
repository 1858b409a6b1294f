/** Who a turn is for (row L9). */
export interface Auth {
  /** A stored fact: ownership, approvals and audit rest on it. */
  readonly actorId: string;
  /** Never stored, queued, logged, traced or shown: resolved anew after a restart. */
  readonly credentials?: unknown;
}

/**
 * A copy whose `credentials` can be read but are not enumerable: JSON, spreading and console output leave them out.
 * The runtime wraps every `Auth` it is given in this before anything else sees it.
 */
export function concealCredentials(auth: Auth): Auth {
  const concealed = { actorId: auth.actorId };
  if (auth.credentials !== undefined) {
    Object.defineProperty(concealed, "credentials", { value: auth.credentials, enumerable: false });
  }
  return Object.freeze(concealed);
}
