export * from "./effects.ts";
export * from "./initial.ts";
export * from "./input.ts";
export * from "./state.ts";
export * from "./transition.ts";
