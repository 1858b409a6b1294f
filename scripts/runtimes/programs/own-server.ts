/** The fetch handler of a server in `Bun.serve` or `Deno.serve`, beside a second server of the same runtime that listens by itself. */
import { createRuntime, defineAgent } from "troupe";
import { createClient } from "troupe/client";
import { serveRuntime, tokenAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";

type Handler = (request: Request) => Promise<Response>;
interface Globals {
  readonly Bun?: { serve(options: { port: number; fetch: Handler }): { port: number; stop(): Promise<void> } };
  readonly Deno?: {
    serve(
      options: { port: number; hostname: string; onListen(): void },
      fetch: Handler,
    ): { addr: { port: number }; shutdown(): Promise<void> };
  };
}
const { Bun: bun, Deno: deno } = globalThis as Globals;

function serve(fetch: Handler): { port: number; stop(): Promise<void> } {
  if (bun) return bun.serve({ port: 0, fetch });
  if (!deno) throw new Error("Node has no server for fetch handlers");
  const served = deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => undefined }, fetch);
  return { port: served.addr.port, stop: () => served.shutdown() };
}

const desk = defineAgent({ name: "desk", model: scriptedModel(() => "Here.") });
const runtime = await createRuntime({ agents: [desk] });
const token = "a-token-of-ann-0001";
const authenticate = tokenAuth({ tokens: { [token]: { userId: "ann", scopes: [] } } });

async function ask(url: string): Promise<readonly [string | undefined, boolean]> {
  const client = createClient({ url, headers: () => ({ authorization: `Bearer ${token}` }) });
  const turn = await (await client.createAgent({ definition: "desk" })).executeTurn("Anyone?");
  const seen: string[] = [];
  for await (const { type } of turn.follow()) seen.push(type);
  return [(await turn.current()).result?.text, seen.includes("turn.completed")];
}

const server = serveRuntime(runtime, { authenticate });
const second = serveRuntime(runtime, { authenticate });
const listening = process.argv[2] === "both" ? await second.listen() : undefined;
const own = serve((request) => server.fetch(request));
const answers = [await ask(`http://127.0.0.1:${own.port}`)];
if (listening) answers.push(await ask(listening.url), await ask(`http://127.0.0.1:${own.port}`));
await own.stop();
await server.close();
await second.close();
await runtime.shutdown();
process.stdout.write(JSON.stringify(answers));
