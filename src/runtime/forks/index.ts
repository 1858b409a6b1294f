export { type ForkChanges, forkedTree } from "./forked-tree.ts";
export { cutPointAt, type CutPoint, type ForkPoint, forkPoints, pointsText } from "./fork-points.ts";
