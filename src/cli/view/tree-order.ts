/** What the order of a tree needs to know of an agent. */
export interface TreeMember {
  readonly agentId: string;
  readonly parentAgentId: string | null;
}

export interface Placed<Member> {
  readonly member: Member;
  /** Branches in front of its name: `├─ `, `│  └─ `; empty for a root. */
  readonly branch: string;
}

/** Parents before their children, children in the order given; an agent whose parent is not there stands as a root. */
export function placeTree<Member extends TreeMember>(members: readonly Member[]): Placed<Member>[] {
  const known = new Set(members.map((member) => member.agentId));
  const children = new Map<string | null, Member[]>();
  for (const member of members) {
    const parent = member.parentAgentId !== null && known.has(member.parentAgentId) ? member.parentAgentId : null;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [member]);
    else siblings.push(member);
  }
  const placed: Placed<Member>[] = [];
  const visit = (member: Member, branch: string, below: string): void => {
    placed.push({ member, branch });
    const siblings = children.get(member.agentId) ?? [];
    for (const [index, child] of siblings.entries()) {
      const isLast = index === siblings.length - 1;
      visit(child, `${below}${isLast ? "└─ " : "├─ "}`, `${below}${isLast ? "   " : "│  "}`);
    }
  };
  for (const root of children.get(null) ?? []) visit(root, "", "");
  return placed;
}
