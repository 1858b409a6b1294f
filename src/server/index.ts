export { a2aSurface, type A2aSurfaceOptions } from "./a2a/a2a-surface.ts";
export type { A2aServed, A2aSkill } from "./a2a/card.ts";
export { agUiSurface, type AgUiSurfaceOptions } from "./ag-ui/ag-ui-surface.ts";
export { aiSdkSurface, type AiSdkSurfaceOptions } from "./ai-sdk/ai-sdk-surface.ts";
export type { AiSdkData, AiSdkMetadata, AiSdkUsage } from "./ai-sdk/chunks.ts";
export { apiSurface, type ApiSurfaceOptions } from "./api/api-surface.ts";
export type { IssuedTicket, TicketStore } from "./api/tickets.ts";
export { entraAuth, type EntraAuthOptions } from "./core/entra.ts";
export { type Authenticate, type Identity, openAuth, tokenAuth, type TokenAuthOptions } from "./core/identity.ts";
export type { RateRedis, ServeLimits } from "./core/limits.ts";
export type { LogLine } from "./core/metrics.ts";
export type { MetricsAccess } from "./core/probes.ts";
export { agentIdOfName, type NameScope } from "./core/names.ts";
export { openaiSurface, type OpenAiSurfaceOptions } from "./openai/openai-surface.ts";
export { assertCanListen, type Listening, type ListenOptions, type MountedHandlers, nodeListener } from "./listen.ts";
export type { RuntimesByTenant, ServeOptions } from "./serve-options.ts";
export { type RedisSharing, redisSharing, type RedisSharingOptions } from "./redis-sharing.ts";
export { type RuntimeServer, serveRuntime } from "./serve-runtime.ts";
export { type Failure, type InputIssue, jsonFailure, ServerError } from "./core/failures.ts";
export { type Call, type Route, route } from "./core/route.ts";
export { eventFrame, resumePoint, type SseFrame } from "./core/sse.ts";
export type { Caller } from "./core/caller.ts";
export type { Page } from "./core/pages.ts";
export type { RequestKey } from "./core/names.ts";
export type { StartedTurn } from "./core/plain-message.ts";
export type { StubOptions } from "./core/stub-access.ts";
export type { Surface } from "./core/surface.ts";
export type {
  NewWebhook,
  Notification,
  TellingStep,
  Webhook,
  WebhookRegistry,
  WebhookForm,
  WebhookSubject,
} from "./core/webhooks.ts";
export type { LookupAddresses } from "./webhooks/receiver.ts";
export type { WebhookOptions } from "./webhooks/webhooks.ts";
export { tealAgentFileSchema, type TealMetadata } from "./teal/agent-file-schema.ts";
export { tealCatalogSchema } from "./teal/catalog.ts";
export { loadTealAgent, type TealAgent, type TealAgentOptions, type TealModelOptions } from "./teal/load-teal-agent.ts";
export { type TealServed, tealSurface, type TealSurfaceOptions } from "./teal/teal-surface.ts";
