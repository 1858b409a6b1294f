/** How mistakes in arguments name their fields. */
export { renderPath } from "../../base/index.ts";
