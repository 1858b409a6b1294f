// `troupe/mcp/server`: agents as tools of an MCP server, see docs/mcp-server.md.
export { type McpSurfaceOptions, mcpSurface } from "./mcp/mcp-surface.ts";
export { type McpServing, type McpStdio, type McpStdioOptions, serveMcp, type ServeMcpOptions } from "./serve-mcp.ts";
export type { McpServed } from "./mcp/served-agents.ts";
export type { McpToolsOptions } from "./mcp/tools-options.ts";
