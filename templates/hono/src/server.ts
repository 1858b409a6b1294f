import { mkdirSync } from "node:fs";
import { serve } from "@hono/node-server";
import { sqliteStores } from "troupe/stores/sqlite";
import { createApp } from "./app.ts";
import { serveToken } from "./token.ts";

mkdirSync(".troupe", { recursive: true });
const { app, close } = await createApp({ stores: sqliteStores(".troupe/server.db"), token: serveToken() });
const port = Number(process.env["PORT"] || 3000);
const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port }, (address) => {
  console.log(`Listening on http://127.0.0.1:${address.port}. Ask the agent in another terminal: npm run ask`);
});
process.once("SIGINT", () => {
  server.close();
  void close();
});
