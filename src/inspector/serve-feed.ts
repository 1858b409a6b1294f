import type { Feed } from "./feed/feed.ts";
import { newToken, type Tokens } from "./http/gate.ts";
import { InspectorRoutes } from "./http/inspector-routes.ts";
import { closeServer, listenHere } from "./http/listen.ts";

export interface FeedServerOptions {
  /** Default 0: any that is free. It is always bound to 127.0.0.1. */
  readonly port?: number | undefined;
  /** Whether the address may decide, pause and talk. Default false. */
  readonly mayAct?: boolean | undefined;
}

export interface FeedServer {
  readonly origin: string;
  /** The page; its fragment holds the token that may do most. Print it once and treat it as a password. */
  readonly url: string;
  /** The same with the token that only shows. */
  readonly watchUrl: string;
  readonly tokens: Tokens;
  close(): Promise<void>;
}

/** Serves a feed and its page to this machine. Throws `InvalidInputError` for a port that is taken. */
export async function serveFeed(feed: Feed, options: FeedServerOptions = {}): Promise<FeedServer> {
  const tokens: Tokens = { watch: newToken(), act: options.mayAct === true ? newToken() : undefined };
  const { server, port } = await listenHere(options.port ?? 0);
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  const routes = new InspectorRoutes({ feed, tokens, hosts: () => hosts });
  server.on("request", routes.handle);
  server.on("upgrade", routes.upgrade);
  const origin = `http://127.0.0.1:${port}`;
  return {
    origin,
    url: `${origin}/#token=${tokens.act ?? tokens.watch}`,
    watchUrl: `${origin}/#token=${tokens.watch}`,
    tokens,
    async close() {
      routes.close();
      feed.close();
      await closeServer(server);
    },
  };
}
