// `troupe/a2a`: agents of other programs as tools. docs/remote-agents.md explains it.
export { remoteAgent } from "./remote-agent.ts";
export type { RemoteAgentOptions, RemoteAuth, RemoteTask, RemoteUsage } from "./remote-options.ts";
