import type { Runtime } from "../../runtime/index.ts";
import type { MountedHandlers } from "../../server/index.ts";
import { userName } from "../cli-context.ts";
import { type ServeAuth, tokenVariable } from "./serve-auth.ts";

interface PageContext {
  readonly host: string;
  readonly proxies: number | undefined;
  /** `false` with --no-page. */
  readonly page: boolean | undefined;
  readonly access: Pick<ServeAuth, "way" | "token" | "isGiven">;
}

/** The page of a server, mounted on its port. */
export interface ServedPage extends MountedHandlers {
  /** Call it once the address is known; returns the line about the page. */
  listensAt(url: string): string;
  close(): void;
}

const BASE = "/inspector";
/** Other characters are invalid in a WebSocket protocol name. */
const pageToken = /^[\w-]{16,200}$/;
const loopbackNames = ["127.0.0.1", "localhost", "[::1]"];

/**
 * Why a server has no page, or `null` if it has one. The page acts on all agents of the runtime, also on those of other
 * owners. So it is only for the person who started the server on this machine, not for clients behind a proxy or users of
 * a directory.
 */
export function noPageBecause({ host, proxies = 0, page, access }: PageContext): string | null {
  if (page === false) return "--no-page";
  if (access.way === "entra") return "callers authenticate with Entra ID";
  if (!loopbackNames.includes(host) && host !== "::1") return "the server listens for other machines";
  if (proxies > 0) return "the server is behind a proxy";
  if (access.token !== null && !pageToken.test(access.token)) {
    return `${tokenVariable} contains characters other than letters, digits, - and _`;
  }
  return null;
}

/** The inspector of a runtime at `/`, with the API's token; its other routes are below `/inspector`. */
export async function servedPage(
  runtime: Runtime,
  { access, hasApi }: Pick<PageContext, "access"> & { readonly hasApi: boolean },
): Promise<ServedPage> {
  const { inspectorRoutes } = await import("../../inspector/index.ts");
  let port = "";
  const routes = inspectorRoutes(runtime, {
    decide: true,
    by: userName(),
    basePath: BASE,
    ...(hasApi ? { apiDocs: "/api/docs" } : {}),
    hosts: () => loopbackNames.map((name) => `${name}:${port}`),
    token: access.token ?? undefined,
  });
  return {
    listensAt(url) {
      ({ port } = new URL(url));
      return `  Page: ${url}/#token=${access.isGiven ? `… (the one in ${tokenVariable})` : routes.tokens.act}`;
    },
    owns: (url) => isRoot(url) || routes.owns(url),
    handle(request, response) {
      if (isRoot(request.url)) request.url = `${BASE}/`;
      routes.handle(request, response);
    },
    upgrade: routes.upgrade,
    close: () => routes.close(),
  };
}

function isRoot(url: string | undefined): boolean {
  return /^\/(?:\?|$)/.test(url ?? "");
}
