export * from "./account.ts";
export * from "./amounts.ts";
export * from "./limits.ts";
export * from "./price.ts";
export * from "./read-budget.ts";
export * from "./reserve.ts";
export * from "./settle.ts";
