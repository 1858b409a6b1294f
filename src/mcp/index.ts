// `troupe/mcp`: tools of MCP servers, see docs/mcp.md.
export { mcp, mcpLogins, type McpTools } from "./mcp.ts";
export { type FileMcpTokensOptions, fileMcpTokens } from "./file-mcp-tokens.ts";
export type {
  McpAuth,
  McpClientCredentials,
  McpOAuthClient,
  McpOAuthOptions,
} from "./mcp-auth-options.ts";
export type { McpLogins } from "./mcp-logins.ts";
export { McpAuthorizationError } from "./mcp-authorization-error.ts";
export { McpServerError } from "./mcp-server-error.ts";
export type { McpHeaders, McpOptions, McpOwner, McpToolOptions } from "./mcp-options.ts";
export type { McpInputOptions, McpSamplingOptions } from "./mcp-input-options.ts";
export type { McpRoot } from "./mcp-roots.ts";
export { type McpTokenKey, type McpTokenStore, memoryMcpTokens } from "./mcp-token-store.ts";
export { mcpFromConfig, mcpLoginsFromConfig, type McpConfigOptions, type McpConfigTools } from "./mcp-from-config.ts";
export { mcpConfigSchema } from "./mcp-config-schema.ts";
export { mcpLockSchema } from "./mcp-lock.ts";
export type { McpServerOverride } from "./mcp-config.ts";
export {
  checkMcpPins,
  pinMcp,
  type McpPinOptions,
  type McpServerReport,
  type McpToolReport,
} from "./pin-servers.ts";
export type { McpEra } from "./mcp-lock.ts";
export type { ToolChange as McpToolChange } from "./definition-changes.ts";
export type {
  McpPrompt,
  McpPromptMessages,
  McpRequestOptions,
  McpResource,
  McpResources,
  McpResourceTemplate,
} from "./mcp-resource.ts";
export type { ListedSkill, SkillContent, SkillSource } from "../tools/index.ts";
