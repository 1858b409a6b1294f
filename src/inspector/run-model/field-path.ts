/** Formats the path of a field in an error about arguments. */
export { renderPath } from "../../base/index.ts";
