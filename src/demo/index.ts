export { askTeam, documentsIn, folderAt } from "./team.ts";
