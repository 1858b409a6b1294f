import { stemOf } from "./offline-words.ts";

/** General English words that documents use for one another, one group a line. */
const groups = `
kill crash die terminate
delete remove erase
create make build
error failure exception
fail break
begin start launch
end finish complete
limit bound cap maximum
fast quick speed performance
install setup
configure configuration option setting
folder directory
restart resume recover
price cost money
spend cost money
person user human
several multiple many
check validate verify
change modify update edit
show display print
send emit dispatch
receive get accept
save store persist
parallel concurrent simultaneous
wait block
allow permit
forbid refuse deny reject
require need demand
parameter argument
method function
repeat retry again
stop cancel abort halt
default fallback
nested inner child
type kind
list array
purpose reason
machine process
`;

const synonyms: ReadonlyMap<string, readonly string[]> = readGroups();

/** Stems of words that may stand for a word, without itself. */
export function synonymsOf(stem: string): readonly string[] {
  return synonyms.get(stem) ?? [];
}

function readGroups(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of groups.trim().split("\n")) {
    const stems = line.split(" ").map(stemOf);
    for (const stem of stems) {
      found.set(stem, [...(found.get(stem) ?? []), ...stems.filter((other) => other !== stem)]);
    }
  }
  return found;
}
