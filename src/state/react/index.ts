export * from "./transition.ts";
export * from "./state.ts";
export * from "./input.ts";
