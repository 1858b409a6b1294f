import type * as settings from "../config.ts";

// Imported by Node and not by VitePress, whose compiler does not know the language level of the project.
const { config } = (await import(new URL("../config.ts", import.meta.url).href)) as typeof settings;

export default config;
