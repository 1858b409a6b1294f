// `troupe/a2a`: agents of other programs as tools, see docs/remote-agents.md.
export { remoteAgent } from "./remote-agent.ts";
export type { RemoteAgentOptions, RemoteAuth, RemoteTask, RemoteUsage } from "./remote-options.ts";
