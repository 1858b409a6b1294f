import { TerminalError } from "../errors/index.ts";

/**
 * An MCP server needs a login. Open `url` in the person's browser; then pass the address to which the authorization server sent the
 * browser back to `logins.finish()`. A tool's call does not fail with it: the turn waits with an `auth` request.
 */
export class McpAuthorizationError extends TerminalError {
  readonly code = "mcp_authorization";
  /** Name of the server, as in the options. */
  readonly server: string;
  /** Address of the login page. It contains no secret. */
  readonly url: string;
  /** The requested scopes. */
  readonly scopes: readonly string[];

  constructor({ server, url, scopes }: Pick<McpAuthorizationError, "server" | "url" | "scopes">) {
    super(`The MCP server "${server}" needs a login: open ${url}`, { details: { server, url } });
    this.server = server;
    this.url = url;
    this.scopes = scopes;
  }
}
