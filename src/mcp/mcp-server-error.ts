import { TransientError } from "../errors/index.ts";

/**
 * An MCP server cannot be reached, or does not follow the protocol. The error has no cause: errors of the protocol's client contain the
 * server's answers, which may contain secrets.
 */
export class McpServerError extends TransientError {
  readonly code = "mcp_server";
}
