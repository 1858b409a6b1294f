/** Whose data is to be forgotten. */
export interface DataSubject {
  /** The tenant of the runtime. */
  readonly tenant: string;
  /** `agent`: what is kept for one agent. `owner`: what is kept for all agents of an owner. */
  readonly scope: "agent" | "owner";
  /** Id of the agent or of the owner; never empty. */
  readonly id: string;
}

/**
 * Removes what is kept of an agent or owner outside of the runtime's stores, with all its bytes. It is called again until it has
 * succeeded, also by other processes and at the same time, so it must do nothing where nothing is left. It fails the deletion if it throws.
 */
export type Forget = (subject: DataSubject) => void | Promise<void>;
