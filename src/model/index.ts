export * from "./language-model.ts";
