import { createServer, type RequestListener, type Server } from "node:http";
import { InvalidInputError } from "../../errors/index.ts";
import { mcpLoginsFromConfig } from "../../mcp/index.ts";
import { isLoopbackName } from "../../net/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { configFile, type McpConfigWords } from "../mcp/config-words.ts";
import { loginTokens, tokenFolder } from "../mcp/login-tokens.ts";
import { oneLine } from "../view/terminal-text.ts";

export interface McpLoginOptions extends Pick<McpConfigWords, "config"> {
  /** How long to wait for the person, in seconds. Default 300. */
  readonly waitSeconds?: number | undefined;
}

/** The login of this command line: one for all actors. */
const owner = { actorId: null };

/** Prints the address of the login page, and waits until the browser is sent back to this machine. */
export async function mcpLoginCommand(
  context: CliContext,
  server: string,
  options: McpLoginOptions,
): Promise<ExitCode> {
  const { environment, out, note } = context;
  const logins = await mcpLoginsFromConfig(configFile(options), server, { environment, tokens: loginTokens(context) });
  const page = await logins.begin(owner);
  const redirect = redirectOf(page);
  const { promise: ended, resolve, reject } = Promise.withResolvers<ExitCode>();
  const listener = await listenAt(redirect, (request, response) => {
    const answer = (status: number, text: string): void => {
      response.writeHead(status, { "content-type": "text/plain; charset=utf-8", connection: "close" }).end(`${text}\n`);
    };
    const back = new URL(request.url ?? "/", redirect);
    if (request.method !== "GET" || back.pathname !== redirect.pathname) return answer(404, "Not found.");
    logins.finish(back, owner).then(
      () => {
        answer(200, "You are logged in. You can close this page.");
        resolve(exitCodes.success);
      },
      (error: unknown) => {
        answer(400, "The login has failed. The terminal shows why.");
        // The address of another login, or a guess: this login is still open.
        if (error instanceof InvalidInputError) note(`Not this login: ${oneLine(error.message)}`);
        else reject(error as Error);
      },
    );
  });
  const { waitSeconds = 300 } = options;
  const late = setTimeout(() => {
    note(`No login within ${waitSeconds} seconds; run the command again.`);
    resolve(exitCodes.failure);
  }, waitSeconds * 1_000);
  note("Open this address in a browser on this machine, and log in:");
  out(page);
  try {
    const exitCode = await ended;
    if (exitCode === exitCodes.success)
      note(`Logged in to ${oneLine(server)}; the login is in ${tokenFolder(context)}.`);
    return exitCode;
  } finally {
    clearTimeout(late);
    await closed(listener);
  }
}

/** Forgets a login. */
export async function mcpLogoutCommand(
  context: CliContext,
  server: string,
  options: Pick<McpLoginOptions, "config">,
): Promise<ExitCode> {
  const { environment, note } = context;
  const logins = await mcpLoginsFromConfig(configFile(options), server, { environment, tokens: loginTokens(context) });
  await logins.forget(owner);
  note(`The login to ${oneLine(server)} is forgotten here; it is not revoked at the authorization server.`);
  return exitCodes.success;
}

/** Where the login page sends the browser. */
function redirectOf(page: string): URL {
  const redirect = new URL(new URL(page).searchParams.get("redirect_uri") ?? "");
  if (redirect.protocol === "http:" && isLoopbackName(hostOf(redirect))) return redirect;
  throw new InvalidInputError(
    `the redirectUrl ${redirect.origin} is not http on this machine, so this command cannot end the login; leave redirectUrl out`,
  );
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

async function listenAt(redirect: URL, listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(Number(redirect.port || 80), hostOf(redirect), resolve);
  try {
    await promise;
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? "unknown error";
    throw new InvalidInputError(
      `cannot listen at ${redirect.origin} (${code}); end the other login, or give the server another "troupe": { "auth": { "oauth": { "redirectUrl" } } }`,
      { cause },
    );
  }
  return server;
}

async function closed(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeIdleConnections();
  await promise;
}
