export { compileMessages } from "./compile.ts";
