// `troupe/a2a`: agents of other programs as tools. docs/remote-agents.md explains it.
export { type RemoteAgentOptions, remoteAgent, type RemoteAuth } from "./remote-agent.ts";
export type { RemoteUsage } from "./remote-task.ts";
