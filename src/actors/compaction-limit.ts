/** How often a prompt that stays too long for the model is compacted, before the turn fails (F25). */
export const COMPACTIONS_WITHOUT_PROGRESS = 2;

/** What the user is told when the model refuses a prompt as too long for good. */
export function tooLong(compactions: number): string {
  const tried = compactions === 0 ? "" : `, also after ${compactions} compactions`;
  return `the conversation is too long for the model${tried}; clear() or resetConversation() begins a new one, and a larger context window, a smaller history or autoCompact prevents it`;
}
