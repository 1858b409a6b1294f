import type * as Skills from "@modelcontextprotocol/client/ext/skills";
import { optionalPackage } from "../base/index.ts";

/** The used exports of the official package for skills. */
export type SkillSdk = typeof Skills;

/** Loads the package once. Rejects with `UnsupportedError` if it is not installed, or too old to have skills. */
export const loadSkillSdk = optionalPackage(
  async (): Promise<SkillSdk> => await import("@modelcontextprotocol/client/ext/skills"),
  'skills of MCP servers need the package "@modelcontextprotocol/client" from version 2.4: npm install @modelcontextprotocol/client',
);
