export * from "./fake-clock.ts";
export * from "./scripted-model.ts";
