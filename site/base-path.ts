/**
 * The path under which the site is served, from `TROUPE_SITE_BASE`. Default `/`. Throws for anything but an absolute path that ends
 * with a slash, because links of all pages start with it.
 */
export function basePath(environment: Readonly<Record<string, string | undefined>> = process.env): string {
  const base = environment["TROUPE_SITE_BASE"] ?? "/";
  if (!/^\/(?:[\w.~-]+\/)*$/.test(base) || /\/\.{1,2}\//.test(base)) {
    throw new Error(`Invalid TROUPE_SITE_BASE "${base}"; expected a path with a slash at both ends, such as /troupe/.`);
  }
  return base;
}
