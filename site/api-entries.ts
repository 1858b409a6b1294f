/** The pages of the API reference: one for each entry of the package. */
import { generatedFolder } from "./addresses.ts";

/** `troupe/stores/sqlite` is `troupe-stores-sqlite` in an address. */
export function apiSlug(entry: string): string {
  return entry.replaceAll("/", "-");
}

/** Path of a generated page from the root of the repository. */
export function apiPagePath(slug: string): string {
  return `${generatedFolder}/api/${slug}.md`;
}

/** Where the links of reference.md go: entry, then name, then address. */
export type ApiAddresses = Readonly<Record<string, Readonly<Record<string, string>>>>;

export const apiAddressesFile = `${generatedFolder}/api/addresses.json`;
