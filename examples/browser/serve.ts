// Serves pages and the protocols that they speak: chat.tsx at /, use-chat.tsx (AI SDK) at /use-chat, ag-ui.tsx at /http-agent, and, where
// its packages are installed, copilotkit.tsx at /copilotkit. In a clone of the repository:
//
//     npm run example examples/browser/serve.ts
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Plugin, rolldown } from "rolldown";
import { createRuntime, defineAgent, defineTool, type Runtime, textOf } from "troupe";
import {
  agUiSurface,
  aiSdkSurface,
  apiSurface,
  type Identity,
  jsonFailure,
  route,
  type RuntimeServer,
  serveRuntime,
  type Surface,
} from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const order = defineTool({
  name: "order",
  description: "Orders something.",
  parameters: z.object({ what: z.string() }),
  needsApproval: true,
  execute: ({ what }) => `ordered ${what}`,
});

/** Repeats its input, and orders paper on request. */
const desk = defineAgent({
  name: "desk",
  tools: [order],
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    const text = textOf(last?.content ?? "");
    if (last?.role === "tool") return { deltas: ["It is ", "done."] };
    if (text === "Order paper.") return { toolCalls: [{ name: "order", arguments: { what: "paper" } }] };
    return { deltas: ["You said: ", text] };
  }),
});

/** The logged-in users by session cookie. A real app stores them in its database. */
const sessions = new Map<string, Identity>();

function authenticate(request: Request): Identity | null {
  const [, session] = /(?:^|;\s*)session=([\w-]+)/.exec(request.headers.get("cookie") ?? "") ?? [];
  return session === undefined ? null : (sessions.get(session) ?? null);
}

/** The pages and their scripts, by path. */
const pages = { "": "chat", "use-chat": "use-chat", "http-agent": "ag-ui", copilotkit: "copilotkit" } as const;
type Script = (typeof pages)[keyof typeof pages];

/** The pages and their scripts. Loading a page logs the visitor in as a new user; a real app has a login form. */
async function pageSurface(copilotKit: string): Promise<Surface> {
  const html = await readFile(join(import.meta.dirname, "index.html"), "utf8");
  const offered = Object.entries(pages).filter(([, script]) => script !== "copilotkit" || hasCopilotKit(copilotKit));
  const shown = offered.flatMap(([path, script]) => [
    route({
      id: `page of ${script}`,
      method: "GET",
      path: `/${path}`,
      access: "public",
      summary: "The page.",
      responses: { 200: { description: "The page.", media: "text/html" } },
      handle: ({ request }) => {
        const headers = new Headers({ "content-type": "text/html; charset=utf-8" });
        if (authenticate(request) === null) {
          const session = randomBytes(32).toString("base64url");
          sessions.set(session, { userId: `visitor-${sessions.size + 1}`, scopes: [] });
          // Behind TLS add Secure.
          headers.set("set-cookie", `session=${session}; Path=/; HttpOnly; SameSite=Strict`);
        }
        return new Response(html.replace("/chat.js", `/${script}.js`), { headers });
      },
    }),
    route({
      id: `script of ${script}`,
      method: "GET",
      path: `/${script}.js`,
      access: "public",
      summary: "The page's script.",
      responses: { 200: { description: "The script.", media: "text/javascript" } },
      handle: async () =>
        new Response(await bundled(script, script === "copilotkit" ? copilotKit : undefined), {
          headers: { "content-type": "text/javascript; charset=utf-8" },
        }),
    }),
  ]);
  return { name: "page", paths: ["/"], failure: jsonFailure, routes: shown };
}

const bundles = new Map<Script, Promise<string>>();

function hasCopilotKit(folder: string): boolean {
  try {
    createRequire(join(folder, "page.js")).resolve("@copilotkit/react-core/package.json");
    return true;
  } catch {
    return false;
  }
}

/** A page's script in one file; any bundler works. `folder`: where its source is. */
export function bundled(script: Script = "chat", folder: string = import.meta.dirname): Promise<string> {
  const known = bundles.get(script) ?? bundleOf(script, folder);
  bundles.set(script, known);
  return known;
}

async function bundleOf(script: Script, folder: string): Promise<string> {
  const bundle = await rolldown({
    input: join(folder, `${script}.tsx`),
    plugins: [styles],
    platform: "browser",
    // Inside the repository, this condition maps `troupe` to its sources; elsewhere it is unknown and has no effect.
    resolve: { conditionNames: ["troupe-source", "browser", "import", "default"] },
    transform: { jsx: { runtime: "automatic" }, define: { "process.env.NODE_ENV": '"development"' } },
    tsconfig: false,
    // "use client" of React packages has no meaning in a bundle for browsers.
    onLog: (level, log, pass) => {
      if (log.code !== "MODULE_LEVEL_DIRECTIVE") pass(level, log);
    },
  });
  const { output } = await bundle.generate({ format: "esm", codeSplitting: false });
  await bundle.close();
  return output[0].code;
}

/** Puts an imported style sheet into the page. */
const styles: Plugin = {
  name: "styles",
  transform: {
    filter: { id: /\.css$/ },
    handler: (css) => ({
      code: `document.head.append(Object.assign(document.createElement("style"), { textContent: ${JSON.stringify(css)} }));`,
      moduleType: "js",
    }),
  },
};

/** `copilotKit`: the folder with copilotkit.tsx and its packages. */
export async function serveChat(runtime: Runtime, copilotKit: string = import.meta.dirname): Promise<RuntimeServer> {
  const surfaces = [apiSurface(), aiSdkSurface(), agUiSurface(), await pageSurface(copilotKit)];
  return serveRuntime(runtime, { authenticate, surfaces });
}

/** The runtime of the example. With `streaming`, a reloaded page continues in the middle of an answer. */
export async function deskRuntime(): Promise<Runtime> {
  return await createRuntime({ agents: [desk], streaming: "always" });
}

if (import.meta.main) {
  const server = await serveChat(await deskRuntime());
  const { url } = await server.listen({ port: 8080 });
  console.log(`Open ${url} in a browser; Ctrl-C ends it.`);
}
