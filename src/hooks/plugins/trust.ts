import { InvalidInputError } from "../../errors/index.ts";
import type { Plugin } from "../hooks.ts";

export interface TrustOptions {
  /** Ids of actors who may talk to the agent, or a function that says so. `actorId` is null where nobody was named. */
  readonly allow: readonly string[] | ((actorId: string | null, agentId: string) => boolean | Promise<boolean>);
}

/** Ends a turn before its first model call unless the actor who started it may talk to this agent. */
export function trust({ allow }: TrustOptions): Plugin {
  if (typeof allow !== "function" && !Array.isArray(allow)) {
    throw new InvalidInputError("trust: allow must be a list of actor ids, or a function");
  }
  return {
    name: "trust",
    hooks: {
      async afterUserInput(draft, { actorId, agent }) {
        const isAllowed: unknown =
          typeof allow === "function"
            ? await allow(actorId, agent.agentId)
            : actorId !== null && allow.includes(actorId);
        if (isAllowed === true) return;
        const who = actorId === null ? "a turn without an actor" : `actor "${actorId}"`;
        draft.stop(`${who} is not trusted by agent "${agent.agentId}"`);
      },
    },
  };
}
