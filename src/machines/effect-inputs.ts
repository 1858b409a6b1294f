/** What an effect actor of a turn is started with; all else it reads through its host. */
export interface TurnEffectInput {
  readonly turnId: string;
}

/** What the effect actor of a call is started with. */
export interface CallEffectInput {
  readonly turnId: string;
  readonly callId: string;
}
