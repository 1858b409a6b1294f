export { documentModel } from "./document-model.ts";
export { askTeam } from "./team.ts";
