// `troupe/mcp`: tools of MCP servers, see docs/mcp.md.
export { mcp, type McpTools } from "./mcp.ts";
export { McpServerError } from "./mcp-server-error.ts";
export type { McpHeaders, McpOptions, McpOwner, McpToolOptions } from "./mcp-options.ts";
