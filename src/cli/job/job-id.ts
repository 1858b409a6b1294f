const consonants = "bdfgklmnprstvz";
const vowels = "aeiou";

/** A short id that can be read aloud and typed: `ask-` and three syllables, one of 343,000. */
export function readableId(prefix: string, random: () => number): string {
  const pick = (letters: string): string => letters.charAt(Math.floor(random() * letters.length));
  const syllables = Array.from({ length: 3 }, () => pick(consonants) + pick(vowels));
  return `${prefix}-${syllables.join("")}`;
}

/** How a subagent is named beside its root: the first digits of its hash. */
export function shortAgentId(agentId: string): string {
  const end = agentId.indexOf("~");
  return end < 0 ? agentId : agentId.slice(end, end + 7);
}
