export * from "./model-error.ts";
export * from "./rejections.ts";
export * from "./terminals.ts";
export * from "./transients.ts";
export * from "./troupe-error.ts";
