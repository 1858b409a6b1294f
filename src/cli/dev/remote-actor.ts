import {
  AgentBusyError,
  AgentDeletedError,
  AgentNotStartedError,
  AlreadyOwnedError,
  InvalidInputError,
  NotFoundError,
  PolicyRefusedError,
  RequestConflictError,
  StoreUnavailableError,
  TroupeError,
  TurnConflictError,
  UnsupportedError,
} from "../../errors/index.ts";
import { type Actor, runtimeActor } from "../../inspector/index.ts";
import type { Runtime } from "../../runtime/index.ts";
import type { Thrown } from "./dev-messages.ts";

/** The actions of the inspector, by the name under which they are called in the process that runs the agents. */
type ActMethod = "decide" | "pause" | "resume" | "abort" | "delete" | "createAgent" | "startTurn" | "fork" | "replay";

/** The process of the conversation, as far as the inspector uses it. */
export interface CalledSession {
  readonly definitions: readonly string[];
  readonly models: readonly string[];
  call(method: string, args: readonly unknown[]): Promise<unknown>;
}

/**
 * The actor of an inspector whose agents run in another process. While that process is not ready, what the store can do is done there, and
 * the rest is refused with `whyNot`.
 */
export function remoteActor(
  session: () => CalledSession | undefined,
  { stored, whyNot }: { readonly stored: Actor; readonly whyNot: () => string },
): Actor {
  const call = async <Answer>(method: ActMethod, ...args: readonly unknown[]): Promise<Answer> => {
    const ready = session();
    if (ready !== undefined) return (await ready.call(method, args)) as Answer;
    throw new UnsupportedError(whyNot());
  };
  const either = async <Answer>(
    method: "decide" | "pause" | "resume" | "abort" | "delete",
    inStore: () => Promise<Answer>,
    ...args: readonly unknown[]
  ): Promise<Answer> => (session() === undefined ? await inStore() : await call<Answer>(method, ...args));
  return {
    decide: (requestId, body) => either("decide", () => stored.decide(requestId, body), requestId, body),
    pause: (agentId) => either("pause", () => stored.pause(agentId), agentId),
    resume: (agentId) => either("resume", () => stored.resume(agentId), agentId),
    abort: (agentId, reason) => either("abort", () => stored.abort(agentId, reason), agentId, reason),
    delete: (agentId) => either("delete", () => stored.delete(agentId), agentId),
    talk: {
      get definitions() {
        return session()?.definitions ?? [];
      },
      createAgent: (body) => call("createAgent", body),
      startTurn: (agentId, body) => call("startTurn", agentId, body),
    },
    forks: {
      get models() {
        return session()?.models ?? [];
      },
      fork: (runId, body) => call("fork", runId, body),
      replay: (runId) => call("replay", runId),
    },
  };
}

/** What a process with a runtime answers calls with. */
export function calledActor(runtime: Runtime, by: string): CalledSession {
  const { talk, forks, ...acts } = runtimeActor(runtime, by);
  const methods: Readonly<Record<string, unknown>> = { ...acts, ...talk, ...forks };
  return {
    definitions: talk?.definitions ?? [],
    models: forks?.models ?? [],
    async call(method, args) {
      const act = methods[method];
      if (typeof act !== "function") throw new UnsupportedError(`there is no action ${method}`);
      return (await act(...args)) as unknown;
    },
  };
}

/** An error as it is sent to the other process. */
export function thrownOf(error: unknown): Thrown {
  if (!(error instanceof TroupeError)) {
    return { code: "unexpected", message: error instanceof Error ? error.message : String(error) };
  }
  const { code, message } = error;
  return error instanceof InvalidInputError ? { code, message, issues: [...error.issues] } : { code, message };
}

const rejections = [
  NotFoundError,
  AgentDeletedError,
  UnsupportedError,
  AgentNotStartedError,
  AgentBusyError,
  TurnConflictError,
  AlreadyOwnedError,
  PolicyRefusedError,
  RequestConflictError,
  StoreUnavailableError,
] as const;

/** The error of a call in the other process, to be thrown here. */
export function errorOf({ code, message, issues }: Thrown): Error {
  if (code === "invalid_input") return new InvalidInputError(message, { issues });
  for (const Rejection of rejections) {
    const error = new Rejection(message);
    if (error.code === code) return error;
  }
  return new Error(message);
}
