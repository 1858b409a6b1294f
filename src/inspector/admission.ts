import { createHash, timingSafeEqual } from "node:crypto";

/** The one foreign page that may be let in, when it is asked for. */
export const STATELY_ORIGIN = "https://stately.ai";

export interface Gate {
  readonly port: number;
  readonly token: string;
  readonly allowStately: boolean;
}

/** What a request says about where it comes from. */
export interface Visitor {
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly token: string | null;
}

/**
 * Whether a request may see anything at all (guarantee S5). A page of another site can make a browser send requests to
 * this machine: its name resolves to 127.0.0.1 (then the Host is foreign), or it says so itself (then the Origin is).
 * Programs that are no browsers send no Origin. All of them need the token.
 */
export function isAdmitted({ host, origin, token }: Visitor, { port, token: right, allowStately }: Gate): boolean {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  if (host === undefined || !hosts.includes(host)) return false;
  const origins = [...hosts.map((own) => `http://${own}`), ...(allowStately ? [STATELY_ORIGIN] : [])];
  if (origin !== undefined && !origins.includes(origin)) return false;
  return token !== null && timingSafeEqual(digestOf(token), digestOf(right));
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
