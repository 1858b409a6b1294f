export type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** One closed walk `[a, b, a]` for each group of nodes that reach each other; a node that points to itself counts. */
export function cyclesOf(graph: Graph): readonly (readonly string[])[] {
  const cycles: string[][] = [];
  const reported = new Set<string>();
  for (const node of [...graph.keys()].sort()) {
    if (reported.has(node)) continue;
    const walk = shortestWalk(graph, node, (target) => target === node);
    if (walk === undefined) continue;
    cycles.push([...walk]);
    for (const member of walk) reported.add(member);
  }
  return cycles;
}

/** The shortest walk of at least one edge from `start` to a node that `isGoal` accepts. */
export function shortestWalk(
  graph: Graph,
  start: string,
  isGoal: (node: string) => boolean,
): readonly string[] | undefined {
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (const node of queue) {
    for (const target of graph.get(node) ?? []) {
      if (isGoal(target)) return [...walkBack(cameFrom, start, node), target];
      if (target === start || cameFrom.has(target)) continue;
      cameFrom.set(target, node);
      queue.push(target);
    }
  }
  return undefined;
}

function walkBack(cameFrom: ReadonlyMap<string, string>, start: string, end: string): string[] {
  const walk = [end];
  for (let node = end; node !== start; ) {
    node = cameFrom.get(node) ?? start;
    walk.unshift(node);
  }
  return walk;
}
