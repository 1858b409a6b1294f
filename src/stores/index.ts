export * from "./batch.ts";
export * from "./ports.ts";
